#!/bin/sh
# Starts a host with systemd as process 1, in separate namespaces: systemd-host.sh LOWER FOLDER NAME.
# LOWER is the root folder of a Linux system with systemd. The host writes only to memory, and changes neither this machine
# nor other hosts.
set -eu
lower=$1 folder=$2 name=$3
if [ "${4-}" != inside ]; then
  # The program that started this script removes the cgroup.
  groups=$(awk '$3 == "cgroup2" {print $2; exit}' /proc/mounts)
  [ -n "$groups" ] || { echo 'no cgroup2 hierarchy is mounted' >&2; exit 1; }
  own=$(sed -n 's/^0:://p' /proc/self/cgroup)
  group=$groups${own%/}/flotilla-test-$$
  mkdir "$group"
  echo "$group" > "$folder/group"
  echo $$ > "$group/cgroup.procs"
  exec unshare --mount --pid --uts --ipc --net --cgroup --fork --kill-child sh "$0" "$lower" "$folder" "$name" inside
fi
mount --make-rprivate /
mount -t tmpfs -o mode=755 scratch "$folder"
mkdir "$folder/upper" "$folder/work" "$folder/root"
root=$folder/root
mount -t overlay -o "lowerdir=$lower,upperdir=$folder/upper,workdir=$folder/work" overlay "$root"
mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/run" "$root/tmp"
mount -t proc proc "$root/proc"
# The kernel settings of this machine are read-only for the host.
for path in sys sysrq-trigger irq bus; do
  [ ! -e "$root/proc/$path" ] || { mount --bind "$root/proc/$path" "$root/proc/$path" && mount -o remount,bind,ro "$root/proc/$path"; }
done
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 dev "$root/dev"
for device in null zero full random urandom tty; do
  : > "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
ln -s pts/ptmx "$root/dev/ptmx"
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
mount -t tmpfs shm "$root/dev/shm"
mount -t tmpfs -o mode=755 run "$root/run"
mount -t tmpfs -o mode=1777 tmp "$root/tmp"
# Removes the services of LOWER, so that only services that the test installs run.
rm -rf "$root/etc/systemd/system" "$root/opt/flotilla" "$root/etc/flotilla" "$root/var/lib/flotilla"
mkdir -p "$root/etc/systemd/system" "$root/opt"
echo "$name" > "$root/etc/hostname"
hostname "$name"
cd "$root"
mkdir -p .old-root
pivot_root . .old-root
umount -l /.old-root
exec env -i container=flotilla-test PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  /lib/systemd/systemd --system --unit=basic.target --show-status=0 < /dev/null
