#!/bin/sh
# After the files are there: the user, who may read the policy, and the directory of the ledger, which nothing here ever empties.
set -e
if ! getent passwd dpproxy >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/dpproxy --no-create-home --shell /usr/sbin/nologin --comment "dpproxy service" dpproxy
fi
install -d -o dpproxy -g dpproxy -m 0750 /var/lib/dpproxy
install -d -o root -g root -m 0700 /etc/dpproxy/credentials
chgrp dpproxy /etc/dpproxy
chmod 0750 /etc/dpproxy
if [ -f /etc/dpproxy/policy.yaml ] && [ "$(stat -c %G /etc/dpproxy/policy.yaml)" = root ]; then
	chgrp dpproxy /etc/dpproxy/policy.yaml
	chmod 0640 /etc/dpproxy/policy.yaml
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart dpproxy.service
fi
