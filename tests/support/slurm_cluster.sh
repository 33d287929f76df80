#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A Slurm cluster of one node on this machine, all of its files in one folder, for tests:
#   slurm_cluster.sh start DIR    prints nothing, writes DIR/slurm.conf (SLURM_CONF for its clients)
#   slurm_cluster.sh stop DIR     ends its three daemons, by their ids
# Exit status 77: it cannot be started here, the last line of standard error says why.
set -euo pipefail

action=$1
dir=$(realpath -m "$2")
node=$(hostname -s)
export PATH=$PATH:/usr/sbin:/sbin

cannot() {
    stop
    echo "$1" >&2
    exit 77
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

write_configuration() {
    cat >"$dir/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MinJobAge=3600
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=local Nodes=$node Default=YES MaxTime=INFINITE State=UP
CONF
}

start_munge() {
    (umask 077 && dd if=/dev/urandom of="$dir/munge.key" bs=1024 count=1 status=none)
    munged --force --key-file="$dir/munge.key" --socket="$dir/munge.socket" \
        --pid-file="$dir/munged.pid" --log-file="$dir/munged.log" --seed-file="$dir/munged.seed" \
        2>"$dir/munged.err" || cannot "munged does not start: $(tail -n 1 "$dir/munged.err")"
}

wait_for_node() {
    for _ in $(seq 60); do
        if sinfo --noheader --format=%T 2>/dev/null | grep -q '^idle$'; then
            return
        fi
        sleep 0.5
    done
    cannot "the node does not come up: $(tail -n 1 "$dir/slurmd.log" "$dir/slurmctld.log" 2>&1)"
}

start() {
    for program in munged slurmctld slurmd sbatch python3; do
        command -v "$program" >/dev/null || cannot "$program is not installed"
    done
    [ "$(id -u)" = 0 ] || cannot "slurmd wants to be started by root"
    mkdir -p "$dir/state" "$dir/spool"
    chmod 700 "$dir"
    write_configuration
    start_munge
    export SLURM_CONF=$dir/slurm.conf
    slurmctld -f "$dir/slurm.conf" >"$dir/start.log" 2>&1 ||
        cannot "slurmctld does not start: $(tail -n 1 "$dir/start.log")"
    slurmd -f "$dir/slurm.conf" -N "$node" >"$dir/start.log" 2>&1 ||
        cannot "slurmd does not start: $(tail -n 1 "$dir/start.log")"
    wait_for_node
}

stop() {
    for daemon in slurmd slurmctld munged; do
        if [ -s "$dir/$daemon.pid" ]; then
            kill "$(cat "$dir/$daemon.pid")" 2>/dev/null || true
        fi
    done
}

case $action in
start) start ;;
stop) stop ;;
esac
