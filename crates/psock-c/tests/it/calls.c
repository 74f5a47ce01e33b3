/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/*
 * Every function of psock.h, in order and out of order, both ends in one process. The arguments are an option for
 * security and its value.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <psock.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "line %d: %s: errno %d, %s\n", __LINE__, #what, errno,     \
				psock_error());                                                    \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* A call that fails with this errno and a sentence that has these words. */
#define FAILS(call, number, words)                                                                 \
	CHECK((call) == -1 && errno == (number) && strstr(psock_error(), words) != NULL)

static struct sockaddr_in at(const char *address, int port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	CHECK(inet_pton(AF_INET, address, &in.sin_addr) == 1);
	return in;
}

/* A listener at two addresses; `path` gets the text of each. */
static int listener(const char *security, const char *value, char path[2][32])
{
	/* Below the ephemeral ports, so that nobody gets one by chance; other processes begin elsewhere. */
	static int port;
	if (port == 0)
		port = 10000 + getpid() % 1000 * 10;
	for (int tries = 0; tries < 1000; tries++, port++) {
		int fd = psock_socket();
		CHECK(fd >= 0);
		CHECK(psock_setsockopt(fd, security, value) == 0);
		for (int i = 0; i < 2; i++) {
			struct sockaddr_in address = at(i == 0 ? "127.0.0.1" : "127.0.0.2", port);
			CHECK(psock_bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
			sprintf(path[i], "127.0.0.%d:%d", i + 1, port);
		}
		if (psock_listen(fd, 4) == 0) {
			port++;
			return fd;
		}
		CHECK(errno == EADDRINUSE);
		CHECK(psock_close(fd) == 0);
	}
	CHECK(!"a free port");
	return -1;
}

static int connected(const char *security, const char *value, char path[2][32])
{
	int fd = psock_socket();
	CHECK(psock_setsockopt(fd, security, value) == 0);
	CHECK(psock_setsockopt(fd, "path-timeout", "30s") == 0);
	CHECK(psock_setsockopt(fd, "follow-announced", "yes") == 0);
	CHECK(psock_setsockopt(fd, "path", path[0]) == 0);
	CHECK(psock_setsockopt(fd, "path", path[1]) == 0);
	CHECK(psock_connect(fd, NULL, 0) == 0);
	return fd;
}

static void wrong_calls(const char *security, const char *value)
{
	char byte = 0;
	int fd = psock_socket();
	CHECK(fd >= 0);
	FAILS(psock_setsockopt(fd, "colour", "blue"), ENOPROTOOPT, "colour");
	FAILS(psock_setsockopt(fd, "driver", "fastest"), EINVAL, "fastest");
	FAILS(psock_setsockopt(fd, NULL, "x"), EFAULT, "");
	FAILS(psock_setsockopt(fd + 1000, "plain", "yes"), EBADF, "does not belong to psock");
	FAILS(psock_connect(fd, NULL, 0), EINVAL, "`plain`");
	FAILS(psock_send(fd, &byte, 1, 0), ENOTCONN, "not connected");
	FAILS(psock_recv(fd, &byte, 1, 0), ENOTCONN, "not connected");
	FAILS(psock_shutdown(fd, SHUT_WR), ENOTCONN, "not connected");
	FAILS(psock_accept(fd, NULL, NULL), EINVAL, "does not listen");
	struct sockaddr unix_address = {.sa_family = AF_UNIX};
	FAILS(psock_bind(fd, &unix_address, sizeof(unix_address)), EAFNOSUPPORT, "IPv4");
	CHECK(psock_setsockopt(fd, security, value) == 0);
	CHECK(psock_setsockopt(fd, "connect-timeout", "2s") == 0);
	FAILS(psock_listen(fd, 1), EINVAL, "address");
	struct sockaddr_in nobody = at("127.0.0.1", 1);
	FAILS(psock_connect(fd, (struct sockaddr *)&nobody, sizeof(nobody)), ECONNREFUSED, "127.0.0.1:1");
	CHECK(psock_close(fd) == 0);
	FAILS(psock_close(fd), EBADF, "does not belong to psock");
}

/* Both ways, half closed, with the names of both ends. */
static void there_and_back(const char *security, const char *value)
{
	char path[2][32], text[16] = "", counters[4096];
	int listening = listener(security, value, path);
	CHECK(fcntl(listening, F_SETFL, O_NONBLOCK) == 0);
	FAILS(psock_accept(listening, NULL, NULL), EAGAIN, "");
	int one = connected(security, value, path);
	struct pollfd file = {.fd = listening, .events = POLLIN};
	CHECK(poll(&file, 1, -1) == 1);
	struct sockaddr_in peer, name;
	socklen_t size = sizeof(peer);
	/* It takes nothing when it cannot say what it took. */
	FAILS(psock_accept(listening, (struct sockaddr *)&peer, NULL), EFAULT, "");
	int other = psock_accept(listening, (struct sockaddr *)&peer, &size);
	CHECK(other >= 0 && size == sizeof(peer));
	size = sizeof(name);
	CHECK(psock_getsockname(one, (struct sockaddr *)&name, &size) == 0);
	CHECK(memcmp(&name.sin_addr, &peer.sin_addr, sizeof(name.sin_addr)) == 0);
	CHECK(name.sin_port == peer.sin_port);
	size = sizeof(name);
	CHECK(psock_getpeername(other, (struct sockaddr *)&name, &size) == 0);
	CHECK(name.sin_port == peer.sin_port);
	/* Cut to the room that is there, with the length that it has. */
	size = 2;
	CHECK(psock_getpeername(other, (struct sockaddr *)&name, &size) == 0);
	CHECK(size == sizeof(name));

	CHECK(fcntl(other, F_SETFL, O_NONBLOCK) == 0);
	CHECK(psock_recv(other, text, sizeof(text), 0) == -1 && errno == EAGAIN);
	CHECK(psock_write(one, "there", 5) == 5);
	file = (struct pollfd){.fd = other, .events = POLLIN};
	CHECK(poll(&file, 1, -1) == 1);
	CHECK(psock_recv(other, text, sizeof(text), MSG_PEEK) == 5);
	CHECK(psock_read(other, text, sizeof(text)) == 5 && memcmp(text, "there", 5) == 0);
	CHECK(psock_shutdown(one, SHUT_WR) == 0);
	CHECK(poll(&file, 1, -1) == 1);
	CHECK(psock_recv(other, text, sizeof(text), 0) == 0);
	CHECK(psock_send(other, "back", 4, MSG_NOSIGNAL) == 4);
	CHECK(psock_recv(one, text, sizeof(text), MSG_WAITALL | MSG_PEEK) > 0);
	CHECK(psock_recv(one, text, 4, MSG_WAITALL) == 4 && memcmp(text, "back", 4) == 0);

	ssize_t length = psock_counters(one, counters, sizeof(counters));
	CHECK(length > 0 && (size_t)length == strlen(counters));
	CHECK(strstr(counters, path[0]) != NULL);
	CHECK(psock_counters(one, counters, 3) > 0 && strlen(counters) == 2);
	/* This one does not wait, the other one does. */
	CHECK(psock_close(other) == 0);
	CHECK(psock_recv(one, text, sizeof(text), 0) == 0);
	CHECK(psock_close(one) == 0);
	CHECK(psock_close(listening) == 0);
}

/* An end that is given up is an error at the other one, not an end of its stream. */
static void given_up(const char *security, const char *value)
{
	char path[2][32], text[16];
	int listening = listener(security, value, path);
	int one = connected(security, value, path);
	int other = psock_accept(listening, NULL, NULL);
	CHECK(other >= 0);
	struct timeval time = {.tv_sec = 600};
	CHECK(setsockopt(other, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)) == 0);
	CHECK(psock_write(one, "short", 5) == 5);
	CHECK(psock_recv(other, text, 5, MSG_WAITALL) == 5);
	CHECK(psock_abort(one) == 0);
	FAILS(psock_recv(other, text, sizeof(text), 0), ECONNRESET, "peer");
	CHECK(psock_close(other) == -1);
	CHECK(psock_close(listening) == 0);
}

/* What another thread does with a descriptor, and how its last call ended. */
struct reader {
	int fd;
	pthread_barrier_t first;
	ssize_t last;
};

static void *read_on(void *argument)
{
	struct reader *reader = argument;
	char byte;
	CHECK(psock_recv(reader->fd, &byte, 1, 0) == 1);
	pthread_barrier_wait(&reader->first);
	reader->last = psock_recv(reader->fd, &byte, 1, 0);
	return NULL;
}

/* What is closed or given up while another thread is in a call with it is closed or given up all the same. */
static void shared(const char *security, const char *value, int aborts)
{
	char path[2][32], text[16];
	int listening = listener(security, value, path);
	int one = connected(security, value, path);
	struct reader reader = {.fd = psock_accept(listening, NULL, NULL)};
	CHECK(reader.fd >= 0);
	pthread_t thread;
	CHECK(pthread_barrier_init(&reader.first, NULL, 2) == 0);
	CHECK(pthread_create(&thread, NULL, read_on, &reader) == 0);
	CHECK(psock_write(one, "a", 1) == 1);
	pthread_barrier_wait(&reader.first);
	if (aborts) {
		CHECK(psock_abort(reader.fd) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
		CHECK(reader.last == -1);
		FAILS(psock_recv(one, text, sizeof(text), 0), ECONNRESET, "peer");
		CHECK(psock_close(one) == -1);
	} else {
		CHECK(psock_write(reader.fd, "b", 1) == 1);
		CHECK(psock_close(reader.fd) == 0);
		CHECK(psock_recv(one, text, sizeof(text), 0) == 1);
		CHECK(psock_recv(one, text, sizeof(text), 0) == 0);
		CHECK(psock_close(one) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
		/* The end, or no descriptor any more. */
		CHECK(reader.last == 0 || reader.last == -1);
	}
	pthread_barrier_destroy(&reader.first);
	CHECK(psock_close(listening) == 0);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	wrong_calls(argv[1], argv[2]);
	there_and_back(argv[1], argv[2]);
	given_up(argv[1], argv[2]);
	shared(argv[1], argv[2], 0);
	shared(argv[1], argv[2], 1);
	puts("all calls did what psock.h says");
	return 0;
}
