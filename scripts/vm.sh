# shellcheck shell=bash
# Virtual machines with Debian's kernels; sourced by scripts/test-kernels and scripts/test-deb. They are
# emulated (no KVM is needed), and their clock counts instructions: see docs/decisions/209-debians-kernels.md.

# boot VERSION ROOT RESULTS SECONDS: boots the kernel target/peers/kernels/VERSION with the files below the
# folder ROOT, read-only below a tmpfs, and RESULTS as /results; /results/start is its first process. Ends it
# after so many seconds. The console's output is in RESULTS/console, the seconds that it took in
# RESULTS/seconds.
boot() {
	local kernel=target/peers/kernels/$1 root=$2 results=$3 limit=$4 release
	release=$(ls "$kernel/tree/lib/modules")
	initramfs "$kernel" "$release" "$results/initramfs"
	cp -al "$kernel/tree/lib/modules" "$results/"
	local share=security_model=none,multidevs=remap begin=$SECONDS
	# A nanosecond an instruction. The kernel would look for timer interrupts in a loop that a busy
	# machine makes too short, and would clear memory by an instruction that is emulated byte by byte.
	timeout --foreground "$limit" qemu-system-x86_64 -accel tcg -icount shift=0,sleep=on -cpu max,erms=off,fsrm=off \
		-smp 1 -m 5G -nographic -no-reboot -nic none \
		-kernel "$kernel/vmlinuz" -initrd "$results/initramfs" \
		-append "console=ttyS0 quiet panic=-1 no_timer_check" \
		-fsdev "local,id=host,path=$root,readonly=on,$share" \
		-device virtio-9p-pci,fsdev=host,mount_tag=host \
		-fsdev "local,id=results,path=$results,$share" \
		-device virtio-9p-pci,fsdev=results,mount_tag=results \
		</dev/null >"$results/console" 2>&1 || true
	echo $((SECONDS - begin)) >"$results/seconds"
}

# initramfs KERNEL RELEASE FILE: busybox, the modules that reach the host's files, scripts/kernel-init.
initramfs() {
	local kernel=$1 release=$2 folder
	folder=$(mktemp -d)
	mkdir "$folder"/{bin,modules,proc,sys,dev,root,host,changes}
	cp /bin/busybox "$folder/bin/"
	for name in sh mount mkdir insmod switch_root; do
		ln -s busybox "$folder/bin/$name"
	done
	cp scripts/kernel-init "$folder/init"
	local module file
	for module in virtio_pci 9pnet_virtio 9p overlay; do
		modprobe -d "$kernel/tree" -S "$release" --show-depends "$module"
	done | sed -n 's/^insmod //p' | awk '!seen[$1]++ { print $1 }' | while read -r file; do
		module=$(basename "$file" .xz)
		case $file in
		*.xz) xz -dc "$file" >"$folder/modules/$module" ;;
		*) cp "$file" "$folder/modules/" ;;
		esac
		printf '%s\n' "$module" >>"$folder/modules/list"
	done
	(cd "$folder" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$3"
	rm -r "$folder"
}
