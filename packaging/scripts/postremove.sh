#!/bin/sh
# After the files are gone. The ledger says what has been spent: it stays, even when the rest is purged, because a proxy that forgot it
# would sell the same rows again.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
case "$1" in
purge | 0)
	if [ -e /var/lib/dpproxy ]; then
		echo "dpproxy: /var/lib/dpproxy is left in place: its ledger knows what was spent. Remove it by hand only with the data."
	fi
	;;
esac
