#!/bin/sh
# Before the files go: the service ends, unless a newer version is about to take their place (dpkg says upgrade, rpm says 1).
set -e
case "$1" in upgrade | 1) exit 0 ;; esac
if [ -d /run/systemd/system ]; then
	systemctl disable --now dpproxy.service
fi
