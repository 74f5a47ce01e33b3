/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/*
 * A file over several paths.
 *
 *	file receive KEY 192.0.2.1 198.51.100.1 7000 > copy
 *	file send KEY 192.0.2.1:7000 198.51.100.1:7000 < original
 *
 * Build: cc -o file file.c $(pkg-config --cflags --libs psock)
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <psock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char bytes[256 * 1024];

static int failed(const char *what)
{
	fprintf(stderr, "file: %s: %s\n", what, psock_error());
	return 1;
}

static int send_stdin(int fd, char **paths, int count)
{
	for (int i = 0; i < count; i++) {
		if (psock_setsockopt(fd, "path", paths[i]) < 0)
			return failed(paths[i]);
	}
	if (psock_connect(fd, NULL, 0) < 0)
		return failed("connecting");
	ssize_t length;
	while ((length = read(0, bytes, sizeof(bytes))) > 0) {
		for (ssize_t sent = 0, now; sent < length; sent += now) {
			now = psock_send(fd, bytes + sent, length - sent, MSG_NOSIGNAL);
			if (now < 0)
				return failed("sending");
		}
	}
	if (length < 0) {
		psock_abort(fd);
		perror("file: reading");
		return 1;
	}
	/* The receiver ends its stream when it has written everything: after that nobody needs us. */
	if (psock_shutdown(fd, SHUT_WR) < 0)
		return failed("ending");
	if (psock_recv(fd, bytes, 1, 0) != 0)
		return failed("waiting for the receiver");
	return psock_close(fd) < 0 ? failed("closing") : 0;
}

static int listen_at(int fd, char **addresses, int count, const char *port)
{
	for (int i = 0; i < count; i++) {
		struct sockaddr_in address = {.sin_family = AF_INET};
		address.sin_port = htons(atoi(port));
		if (inet_pton(AF_INET, addresses[i], &address.sin_addr) != 1) {
			fprintf(stderr, "file: %s is no IPv4 address\n", addresses[i]);
			return -1;
		}
		if (psock_bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
			return failed(addresses[i]), -1;
	}
	return psock_listen(fd, 1) < 0 ? (failed("listening"), -1) : 0;
}

static int receive_to_stdout(int listener)
{
	struct pollfd file = {.fd = listener, .events = POLLIN};
	while (poll(&file, 1, -1) < 0 && errno == EINTR)
		;
	struct sockaddr_in peer;
	socklen_t size = sizeof(peer);
	int fd = psock_accept(listener, (struct sockaddr *)&peer, &size);
	if (fd < 0)
		return failed("accepting");
	fprintf(stderr, "file: a session from %s\n", inet_ntoa(peer.sin_addr));
	psock_close(listener);
	ssize_t length;
	while ((length = psock_recv(fd, bytes, sizeof(bytes), 0)) > 0) {
		if (fwrite(bytes, 1, length, stdout) != (size_t)length)
			break;
	}
	if (length < 0)
		return failed("receiving");
	if (fflush(stdout) != 0 || ferror(stdout)) {
		psock_abort(fd);
		perror("file: writing");
		return 1;
	}
	ssize_t counters = psock_counters(fd, bytes, sizeof(bytes));
	if (counters > 0 && (size_t)counters < sizeof(bytes))
		fprintf(stderr, "%s\n", bytes);
	return psock_close(fd) < 0 ? failed("closing") : 0;
}

int main(int argc, char **argv)
{
	if (argc < 4 || (strcmp(argv[1], "send") != 0 && (strcmp(argv[1], "receive") != 0 || argc < 5))) {
		fprintf(stderr, "usage: file send KEY PATH... | file receive KEY ADDRESS... PORT\n");
		return 2;
	}
	int fd = psock_socket();
	if (fd < 0 || psock_setsockopt(fd, "key", argv[2]) < 0)
		return failed(argv[2]);
	if (strcmp(argv[1], "send") == 0)
		return send_stdin(fd, argv + 3, argc - 3);
	if (listen_at(fd, argv + 3, argc - 4, argv[argc - 1]) < 0)
		return 1;
	return receive_to_stdout(fd);
}
