# shellcheck shell=bash
# Virtual machines with Debian's kernels; sourced by scripts/test-kernels and scripts/test-deb. They are
# emulated (no KVM is needed), and their clock counts instructions and jumps ahead where nothing runs: see
# docs/decisions/209-debians-kernels.md.

# boot VERSION ROOT RESULTS SECONDS: boots the kernel target/peers/kernels/VERSION with the files below the
# folder ROOT, read-only below a tmpfs, and RESULTS as /results; /results/start is its first process. Ends it
# after so many seconds. The console's output is in RESULTS/console, the seconds that it took in
# RESULTS/seconds.
boot() {
	local kernel=target/peers/kernels/$1 root=$2 results=$3 limit=$4 release
	release=$(ls "$kernel/tree/lib/modules")
	initramfs "$kernel" "$release" "$results/initramfs"
	cp -a "$kernel/tree/lib/modules" "$results/"
	local share=security_model=none,multidevs=remap begin=$SECONDS
	# Two nanoseconds an instruction. The kernel would look for timer interrupts in a loop that a busy
	# machine makes too short.
	timeout --foreground "$limit" qemu-system-x86_64 -accel tcg -icount shift=1,sleep=off -cpu max \
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
