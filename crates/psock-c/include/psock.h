/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/*
 * psock: one byte stream over several TCP connections, with functions shaped like those of BSD sockets.
 *
 *	int fd = psock_socket();
 *	psock_setsockopt(fd, "key", "both-ends.key");
 *	psock_setsockopt(fd, "path", "10.0.1.1>192.0.2.1:7000");
 *	psock_setsockopt(fd, "path", "%eth1>198.51.100.1:7000");
 *	if (psock_connect(fd, NULL, 0) < 0)
 *		errx(1, "%s", psock_error());
 *	psock_send(fd, bytes, length, 0);
 *	if (psock_close(fd) < 0)		// until the other end has everything
 *		errx(1, "%s", psock_error());
 *
 * A descriptor is one of the system's: poll(2), select(2), epoll(7), fcntl(2) with O_NONBLOCK, and
 * setsockopt(2) with SO_RCVTIMEO and SO_SNDTIMEO work on it. It is closed with psock_close() only. Functions return -1
 * on failure, set errno, and psock_error() has a sentence. All may be called from any thread,
 * but no descriptor may be closed while psock_connect() or psock_listen() is called with it. Closing a descriptor does
 * not end a call that waits on another thread; psock_abort() does.
 *
 * After fork(2) a child may open sessions of its own; those of its parent it must leave alone.
 */
#ifndef PSOCK_H
#define PSOCK_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A descriptor without session. */
int psock_socket(void);

/*
 * Sets an option by name, before psock_connect() or psock_listen(). One of these three must be chosen:
 *
 *	key		file with the key of both ends, made by `nigh psock key`
 *	authority, certificate, private-key	PEM files; with `name`, what the peer's must hold
 *	plain		yes: no encryption, and whoever connects is taken
 *
 * and these may be:
 *
 *	path		[FROM>]ADDRESS:PORT, FROM a local address or % and an interface; once for each path
 *	driver		adaptive (without it), poll-all or round-robin
 *	connections	data connections on each path: 1 (without it) to 64
 *	congestion	congestion control, such as cubic or bbr
 *	window		memory for what comes before its turn, such as 64MB: 32MiB without it
 *	survive		how long a session waits for a path when all are dead, such as 2m: 60s without it
 *	connect-timeout	how long until the first path has answered: 10s without it
 *	path-timeout	silence, while an answer is owed, after which a path is dead: 3s without it
 *	follow-announced	yes: paths also to the addresses that the listener announces; no without it
 */
int psock_setsockopt(int fd, const char *name, const char *value);

/*
 * An address of this end, once for each: psock_listen() listens at all of them; psock_connect() makes a path from
 * each to the address that it is given (the port must be 0 then).
 */
int psock_bind(int fd, const struct sockaddr *address, socklen_t length);

/*
 * Opens a session over the paths that were set and, unless it is NULL, to this address. Waits until the first path
 * has answered, on a non-blocking descriptor too; the other paths join later.
 */
int psock_connect(int fd, const struct sockaddr *address, socklen_t length);

/* Listens at all addresses that were bound. At most `backlog` sessions wait to be accepted. */
int psock_listen(int fd, int backlog);

/*
 * The next session's descriptor, close-on-exec; `address` gets where its first connection came from. A listening
 * descriptor is readable when a session waits.
 */
int psock_accept(int fd, struct sockaddr *address, socklen_t *length);

/* As send(2) and write(2), with its flags. What is sent is on its way; psock_close() tells whether it arrived. */
ssize_t psock_send(int fd, const void *bytes, size_t length, int flags);
ssize_t psock_write(int fd, const void *bytes, size_t length);

/* As recv(2) and read(2). 0 means that the peer ended its stream and all of it has come, never less. */
ssize_t psock_recv(int fd, void *bytes, size_t length, int flags);
ssize_t psock_read(int fd, void *bytes, size_t length);

/* As shutdown(2): after SHUT_WR the peer reads the rest and then the end. */
int psock_shutdown(int fd, int how);

/*
 * Ends the session and closes the descriptor. On a blocking descriptor it waits until the peer has everything, and
 * fails if the session ends before; on a non-blocking one the library goes on sending while the process lives. The
 * descriptor is closed in either case. A program that ends then should have read to the peer's end before, or the
 * peer finds nobody who confirms its own.
 */
int psock_close(int fd);

/* Ends the session now, so that the peer sees an error, and closes the descriptor. */
int psock_abort(int fd);

/* The addresses of the connection that opened the session, or the first address of a listener. */
int psock_getpeername(int fd, struct sockaddr *address, socklen_t *length);
int psock_getsockname(int fd, struct sockaddr *address, socklen_t *length);

/*
 * What was counted of the session and each connection, as JSON in `text` with a zero at its end, cut to `size` bytes.
 * Returns the bytes that all of it has without the zero, as snprintf(3) does.
 */
ssize_t psock_counters(int fd, char *text, size_t size);

/* What this thread's last call that failed was about: one sentence, valid until its next such call. */
const char *psock_error(void);

#ifdef __cplusplus
}
#endif

#endif /* PSOCK_H */
