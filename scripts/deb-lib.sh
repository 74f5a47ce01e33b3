# shellcheck shell=bash
# What scripts/test-deb-inside and scripts/test-deb-booted have in common; scripts/test-deb puts it beside them.

step() {
	printf '  %s\n' "$*"
}

die() {
	printf 'failed: %s\n' "$*" >&2
	exit 1
}

# shows TEXT COMMAND...: it succeeds, and its output has the text.
shows() {
	local expected=$1 output
	shift
	output=$("$@" 2>&1) || die "$* failed: $output"
	[[ $output == *"$expected"* ]] || die "$* shows not '$expected' but: $output"
}
