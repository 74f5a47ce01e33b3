#!/usr/bin/env bash
# Servers and clients of Debian that share no files between peers, for recordings.
#
# usage: programs.sh serve|talk PROGRAM SERVER OWN
#
# `serve` runs PROGRAM's server at the address SERVER until it is killed, `talk` its clients once, from
# the address OWN. Both work in the current folder, which they share and which has server.pem, a key and
# its certificate, and server.pem.crt, the latter alone.
# A client that cannot be answered yet fails.
set -u
program=$2 server=$3 own=$4

serve_nginx() {
	chmod 755 .
	head -c 3000 /dev/urandom >file
	cat >nginx.conf <<-END
		daemon off; user root; error_log stderr; pid $PWD/pid; events {}
		http {
			access_log off;
			server {
				listen 80; listen 443 ssl http2; root $PWD;
				ssl_certificate server.pem.crt; ssl_certificate_key server.pem;
			}
		}
	END
	exec nginx -p "$PWD" -c nginx.conf
}
talk_nginx() {
	curl -sf -o /dev/null "http://$server/file" &&
		curl -sfk --http2 -o /dev/null "https://$server/file" &&
		curl -sfk --http1.1 --tls-max 1.2 -o /dev/null "https://$server/file" &&
		wget -q -O /dev/null "http://$server/file" &&
		w3m -dump_source "http://$server/file" >/dev/null
}

serve_nghttpd() {
	echo hello >index.html
	exec nghttpd --no-tls -a "$server" -d "$PWD" 8080
}
talk_nghttpd() {
	nghttp -n "http://$server:8080/index.html" &&
		curl -sf --http2-prior-knowledge -o /dev/null "http://$server:8080/index.html"
}

serve_quic() {
	echo hello >index.html
	exec gtlsserver -q -d . "$server" 4433 server.pem server.pem.crt
}
talk_quic() {
	timeout 5 gtlsclient -q --exit-on-all-streams-close "$server" 4433 "https://$server:4433/index.html"
}

serve_dtls() {
	exec openssl s_server -quiet -dtls -listen -accept 4444 -cert server.pem.crt -key server.pem
}
talk_dtls() { # the server asks for a cookie, takes one client and then the next
	{ sleep .15; echo hello; sleep .1; } |
		timeout 2 openssl s_client -dtls -connect "$server:4444" 2>/dev/null | grep -q 'server.test.example'
}

serve_gnutls() { exec gnutls-serv -q --echo -p 5556 --x509certfile server.pem.crt --x509keyfile server.pem; }
talk_gnutls() { echo hello | gnutls-cli --insecure -p 5556 "$server"; }

serve_dnsmasq() {
	exec dnsmasq -k -C /dev/null -u root -x pid --no-resolv --no-hosts --address=/#/192.0.2.7 \
		--txt-record=t.example,hello
}
talk_dnsmasq() {
	dig +short "@$server" "host$RANDOM.example" && dig +short "@$server" t.example TXT &&
		dig +tcp +short "@$server" "host$RANDOM.example" && kdig +short "@$server" AAAA "x$RANDOM.example"
}

serve_unbound() { # over TLS and HTTPS
	cat >unbound.conf <<-END
		server:
		 interface: $server@853
		 interface: $server@8443
		 access-control: 0.0.0.0/0 allow
		 tls-service-key: server.pem
		 tls-service-pem: server.pem.crt
		 https-port: 8443
		 chroot: ""
		 username: ""
		 directory: "$PWD"
		 pidfile: pid
		 use-syslog: no
		 local-zone: example. static
		 local-data: "a.example. A 192.0.2.1"
	END
	exec unbound -d -c unbound.conf
}
talk_unbound() {
	kdig +short +tls "@$server" -p 853 a.example | grep -q 192 &&
		kdig +short +https "@$server" -p 8443 a.example | grep -q 192
}

serve_sshd() {
	mkdir -p /run/sshd
	ssh-keygen -q -t ed25519 -N '' -f host
	exec /usr/sbin/sshd -D -e -f /dev/null -h "$PWD/host" -p 2222
}
talk_sshd() { # as far as the question who we are
	ssh -p 2222 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes \
		"nobody@$server" true 2>&1 | grep -q denied
}

serve_dovecot() {
	chmod 755 .
	mkdir -m 777 mail
	cat >dovecot.conf <<-END
		protocols = imap pop3
		base_dir = $PWD/run
		log_path = /dev/stderr
		listen = $server
		ssl = no
		disable_plaintext_auth = no
		mail_location = maildir:$PWD/mail
		passdb {
		  driver = static
		  args = password=secret
		}
		userdb {
		  driver = static
		  args = uid=65534 gid=65534 home=/tmp
		}
		first_valid_uid = 1
	END
	exec dovecot -F -c dovecot.conf
}
talk_dovecot() { curl -sf "imap://u:secret@$server/" && curl -sf "pop3://u:secret@$server/"; }

serve_snmpd() {
	echo 'rocommunity public' >snmpd.conf
	exec snmpd -f -Lo -C -c snmpd.conf -p pid "udp:$server:161" "tcp:$server:161"
}
talk_snmpd() {
	snmpget -v2c -c public "$server" 1.3.6.1.2.1.1.1.0 &&
		snmpwalk -v1 -c public "$server" 1.3.6.1.2.1.1 &&
		snmpget -v2c -c public "tcp:$server" 1.3.6.1.2.1.1.3.0
}

serve_sip() { exec sipp -sn uas -i "$server" -p 5060 -nostdin; }
talk_sip() { sipp -sn uac -i "$own" "$server:5060" -t un -m 10 -r 20 -max_socket 20 -nostdin; }

serve_mosquitto() {
	printf 'listener 1883 %s\nallow_anonymous true\n' "$server" >mosquitto.conf
	exec mosquitto -c mosquitto.conf
}
talk_mosquitto() { mosquitto_pub -h "$server" -t "room/$RANDOM" -m "hello $RANDOM" -q 1; }

serve_redis() { exec redis-server --bind "$server" --protected-mode no --save ''; }
talk_redis() { redis-cli -h "$server" set "k$RANDOM" "v$RANDOM"; }

serve_memcached() { exec memcached -u nobody -l "$server"; }
talk_memcached() { memcping --servers="$server" && memcstat --servers="$server"; }

serve_rsync() {
	chmod 755 .
	printf 'reverse lookup=no\n[x]\npath=%s\nuse chroot=no\n' "$PWD" >rsync.conf
	exec rsync --daemon --no-detach --config=rsync.conf --address="$server"
}
talk_rsync() { rsync "rsync://$server/x/"; }

serve_git() {
	git init -q --bare x.git
	touch x.git/git-daemon-export-ok
	exec git daemon --reuseaddr --base-path=. --export-all
}
talk_git() { git ls-remote "git://$server/x.git"; }

serve_openvpn() { # serves one client until that is silent, over UDP and over TCP
	local how=(--dev null --tls-server --ca server.pem.crt --cert server.pem.crt --key server.pem --dh none
		--ping 1 --ping-exit 1 --data-ciphers AES-256-GCM)
	while :; do openvpn "${how[@]}" --port 1195 --proto tcp-server; done &
	while :; do openvpn "${how[@]}" --port 1194; done
}
talk_openvpn() {
	local how
	for how in '1194 udp' '1195 tcp-client'; do
		# shellcheck disable=SC2086
		timeout 4 openvpn --dev null --tls-client --nobind --remote "$server" $how --ca server.pem.crt \
			--cert server.pem.crt --key server.pem --data-ciphers AES-256-GCM | grep -q 'Peer Connection Initiated' ||
			return 1
	done
}

serve_wireguard() {
	wireguard wgs 10.61.0.1/24
	wg set wgs listen-port 51820 private-key server.key peer "$(wg pubkey <client.key)" \
		allowed-ips 10.61.0.0/24
	wait
}
talk_wireguard() { # each time from another port; links of all namespaces share one folder of control sockets
	[ -s client.key ] || return 1
	local peer link=wg${own##*.}
	ip link show "$link" >/dev/null 2>&1 || wireguard "$link" 10.61.0.2/24
	peer=$(wg pubkey <server.key)
	wg set "$link" listen-port $((20000 + RANDOM)) private-key client.key peer "$peer" remove
	wg set "$link" peer "$peer" allowed-ips 10.61.0.0/24 endpoint "$server:51820"
	ping -q -c 3 -i .05 -W 1 10.61.0.1
}
wireguard() {
	local key
	for key in server.key client.key; do [ -s $key ] || (umask 077 && wg genkey >$key); done
	WG_PROCESS_FOREGROUND=1 wireguard-go "$1" >/dev/null 2>&1 &
	until wg show "$1" >/dev/null 2>&1; do sleep .1; done
	ip address add "$2" dev "$1"
	ip link set "$1" up
}

serve_syslog() {
	socat -u UDP4-LISTEN:514,fork /dev/null &
	exec socat -u TCP4-LISTEN:514,fork,reuseaddr /dev/null
}
talk_syslog() {
	logger -d -P 514 -n "$server" "something happened $RANDOM" &&
		logger -T --octet-count -P 514 -n "$server" "something else $RANDOM" &&
		logger -d --rfc3164 -P 514 -n "$server" 'and this'
}

serve_tftp() {
	chmod 755 .
	head -c 2000 /dev/urandom >file
	exec dnsmasq -k -C /dev/null -u root -x pid -p 0 --enable-tftp --tftp-root="$PWD"
}
talk_tftp() { curl -sf -o /dev/null "tftp://$server/file"; }

serve_stun() {
	exec turnserver -n -L "$server" -p 3478 --no-tls --no-dtls -u a:b -r x.example --lt-cred-mech \
		--no-cli --log-file stdout --userdb "$PWD/users"
}
talk_stun() { timeout 1 turnutils_stunclient -p 3478 "$server" | grep -q "$own"; }

serve_coap() { exec coap-server-notls -A "$server"; }
talk_coap() {
	coap-client-notls -m get "coap://$server/time" && coap-client-notls -m get "coap+tcp://$server/"
}

serve_slapd() {
	cat >slapd.conf <<-END
		include /etc/ldap/schema/core.schema
		modulepath /usr/lib/ldap
		moduleload back_ldif
		database ldif
		suffix "dc=x"
		directory $PWD
	END
	exec slapd -d 0 -f slapd.conf -h "ldap://$server"
}
talk_slapd() { ldapsearch -x -H "ldap://$server" -b dc=x | grep -q 'No such object'; }

serve_nats() { exec nats-server -a "$server"; }
talk_nats() {
	printf 'CONNECT {"verbose":false}\r\nPUB room.%s 5\r\nhello\r\nPING\r\n' $RANDOM |
		timeout 2 socat -t .2 - "TCP4:$server:4222" | grep -q PONG
}

serve_smb() {
	mkdir state share
	cat >smb.conf <<-END
		[global]
		private dir = $PWD/state
		lock directory = $PWD/state
		state directory = $PWD/state
		cache directory = $PWD/state
		pid directory = $PWD/state
		ncalrpc dir = $PWD/state
		map to guest = bad user
		log file = /dev/null
		[x]
		path = $PWD/share
		guest ok = yes
	END
	exec smbd -F --no-process-group -s smb.conf
}
talk_smb() {
	smbclient -s smb.conf -N "//$server/x" -c quit && smbclient -s smb.conf -p 139 -N "//$server/x" -c quit
}

serve_telnet() {
	printf '#!/bin/sh\necho login:; read x; echo no\n' >login
	chmod 755 . login
	exec socat TCP4-LISTEN:23,fork,reuseaddr "EXEC:telnetd -h -E $PWD/login"
}
talk_telnet() { { sleep .2; echo me; sleep .2; } | timeout 3 telnet "$server" 2>&1 | grep -q login; }

serve_proxy() {
	printf 'Port 8888\nListen %s\nAllow 10.60.0.0/24\nUser root\nGroup root\n' "$server" >proxy.conf
	hello 8081 &
	exec tinyproxy -d -c proxy.conf
}
talk_proxy() {
	curl -sf -x "$server:8888" http://127.0.0.1:8081/x && curl -sf -p -x "$server:8888" http://127.0.0.1:8081/y
}

serve_socks() {
	cat >danted.conf <<-END
		internal: $server port=1080
		external: lo
		socksmethod: none
		clientmethod: none
		user.privileged: root
		user.unprivileged: root
		client pass { from: 0/0 to: 0/0 }
		socks pass { from: 0/0 to: 0/0 }
	END
	hello 8082 &
	exec danted -f danted.conf
}
talk_socks() {
	curl -sf --socks5 "$server" http://127.0.0.1:8082/ && curl -sf --socks4 "$server" http://127.0.0.1:8082/
}
hello() { # a web server at a port
	printf 'HTTP/1.0 200 OK\r\n\r\nhello' >hello
	socat "TCP4-LISTEN:$1,fork,reuseaddr" 'SYSTEM:cat hello'
}

serve_websocket() {
	exec /usr/bin/python3 -c "
import asyncio, websockets
async def echo(stream, *_):
    async for message in stream:
        await stream.send(message)
async def main():
    async with websockets.serve(echo, '$server', 8765):
        await asyncio.Future()
asyncio.run(main())"
}
talk_websocket() {
	/usr/bin/python3 -c "
import asyncio, websockets
async def main():
    async with websockets.connect('ws://$server:8765/$RANDOM') as stream:
        for number in range(4):
            await stream.send('hello ' * number)
            await stream.recv()
asyncio.run(main())"
}

serve_rtp() { exec socat -u UDP4-RECV:5004 /dev/null; }
talk_rtp() {
	ffmpeg -v fatal -f lavfi -i sine -t 0.4 -f rtp "rtp://$server:5004" &&
		ffmpeg -v fatal -f lavfi -i sine -t 0.4 -f mpegts "udp://$server:5004"
}

serve_srt() { while :; do ffmpeg -v fatal -i "srt://$server:9000?mode=listener" -f null -; done; }
talk_srt() { ffmpeg -v fatal -f lavfi -i sine -t 0.4 -f mpegts "srt://$server:9000"; }

serve_rtmp() { while :; do ffmpeg -v fatal -listen 1 -i "rtmp://$server/x/y" -f null -; done; }
talk_rtmp() { ffmpeg -v fatal -f lavfi -i sine -t 0.4 -c:a aac -f flv "rtmp://$server/x/y"; }

serve_opendht() { sleep infinity | dhtnode -p 4222; }
talk_opendht() { { sleep .3; echo 'g room'; sleep .5; echo x; } | timeout 5 dhtnode -b "$server:4222"; }

serve_nbd() { exec nbdkit -f -i "$server" memory 1M; }
talk_nbd() { nbdinfo "nbd://$server"; }

serve_beanstalkd() { exec beanstalkd -l "$server"; }
talk_beanstalkd() {
	printf 'put 0 0 9 5\r\nhello\r\nstats\r\nquit\r\n' | socat -t1 - "TCP4:$server:11300" | grep -q INSERTED
}

serve_rpcbind() { exec rpcbind -f -h "$server"; }
talk_rpcbind() { rpcinfo -T udp "$server" 100000 && rpcinfo -p "$server"; }

serve_postgres() {
	local bin=/usr/lib/postgresql/15/bin
	chown postgres .
	runuser -u postgres -- $bin/initdb -D data -A trust
	echo 'host all all 10.60.0.0/24 trust' >>data/pg_hba.conf
	exec runuser -u postgres -- $bin/postgres -D data -h "$server" -k ''
}
talk_postgres() { psql -qAt -h "$server" -U postgres -c 'select 1'; }

serve_iperf() { exec iperf3 -s; }
talk_iperf() { iperf3 -c "$server" -n 100K && iperf3 -c "$server" -u -n 50K -b 20M; }

serve_radius() {
	cp -r /etc/freeradius/3.0 radius
	printf 'client x {\n ipaddr=10.60.0.0/24\n secret=s\n}\n' >radius/clients.conf
	sed -i "s/reject_delay = 1/reject_delay = 0/" radius/radiusd.conf
	chmod -R a+rX . radius
	exec freeradius -f -l stdout -d radius
}
talk_radius() {
	echo 'User-Name=a,User-Password=b' | radclient -r 1 -t 3 "$server" auth s 2>&1 | grep -q Reject
}

serve_ntp() {
	printf 'local stratum 3\nallow all\ncmdport 0\npidfile %s/pid\n' "$PWD" >chrony.conf
	exec chronyd -d -x -U -u root -f "$PWD/chrony.conf"
}
talk_ntp() {
	timeout 4 chronyd -Q -U -u root -t 3 "server $server iburst maxsamples 1" 'cmdport 0' \
		"pidfile $PWD/pid.$RANDOM"
}

"$1_$program"
