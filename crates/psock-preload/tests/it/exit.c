/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/* Connects to an address and port, sends a line, and ends while another of its threads waits for stdin. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_barrier_t begin;

static void *reader(void *nothing)
{
	flockfile(stdin);
	pthread_barrier_wait(&begin);
	getchar_unlocked();
	return nothing;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	struct sockaddr_in to = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (argc != 3 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1)
		return 2;
	to.sin_port = htons(atoi(argv[2]));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0 || write(fd, "the end\n", 8) != 8)
		return 3;
	pthread_barrier_init(&begin, NULL, 2);
	pthread_create(&thread, NULL, reader, NULL);
	pthread_barrier_wait(&begin);
	return 0;
}
