# Sourced by the scripts beside it: output and the question of root.

# Debian's users do not have the system's programs on their path, and rustup's and Go's may be missing on
# root's.
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH:$HOME/go/bin:/usr/local/go/bin:/usr/local/sbin:/usr/sbin:/sbin"

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
	bold=$'\e[1m' red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'
else
	bold='' red='' green='' plain=''
fi

# say TEXT: a line about what is done.
say() {
	printf '%s==>%s %s\n' "$bold" "$plain" "$*"
}

# die TEXT: the end, with the reason.
die() {
	printf '%s%s: %s%s\n' "$red" "${0##*/}" "$*" "$plain" >&2
	exit 1
}

# as_root COMMAND...: runs it as root, through sudo when we are not.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "root is needed for \`$*\` and there is no sudo: run this as root"
	fi
}

# build_tests FOLDER: builds all that tests need, and notes in the folder what that is, so that they run
# without asking cargo again.
build_tests() {
	mkdir -p "$1"
	cargo build --workspace --examples --quiet &&
		cargo nextest list --workspace --list-type binaries-only --message-format json >"$1/binaries.json" &&
		cargo metadata --format-version 1 >"$1/metadata.json"
}

# Cargo builds as the user who calls, but what it runs (tests, benchmarks) needs root for network
# namespaces: cargo puts this in front of the programs that it has built. Without sudo, tests that
# need root are skipped.
root_runner() {
	if [ "$(id -u)" -ne 0 ] && command -v sudo >/dev/null; then
		local triple
		triple=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
		export "CARGO_TARGET_${triple}_RUNNER=sudo -E"
	fi
}
