// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A gateway as they are commonly built on Linux: iptables' target NFQUEUE hands every forwarded
 * packet to this program, which asks nDPI about the first eight packets of each flow and gives a
 * verdict on every packet. The benchmark of the gate measures it as its peer, so it is built to be
 * fast as far as its kind can be:
 *
 * - Super-packets stay whole (NFQA_CFG_F_GSO). With --copy only so many bytes of each are copied.
 * - One thread a queue, each with flows and nDPI of its own. iptables' --queue-balance keeps the
 *   two directions of a flow in one queue.
 * - Up to BATCH packets a system call (recvmmsg), one verdict for all that are accepted in a row.
 * - Flows in a set-associative table of fixed size. nDPI's part of a flow is freed when it is
 *   decided.
 * - With --mark, a decided flow's packet carries a mark, so that rules (CONNMARK) can let the rest
 *   of the connection by without asking again.
 * - With --refuse it drops what goes to a socket, with --deny the flows of an application.
 *
 * usage: nfqueue [--copy BYTES] [--mark MARK] [--refuse ADDRESS:PORT] [--deny NAME] QUEUES
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <libnetfilter_queue/libnetfilter_queue.h>
#include <linux/netfilter.h>
#include <ndpi_api.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#define MAX_QUEUES 16
/* Packets of a flow that nDPI sees. */
#define INSPECTED 8
/* Packets to a system call. */
#define BATCH 32
/* The largest message: a super-packet and the attributes around it. */
#define MESSAGE (1 << 17)
/* Packets that may wait in the kernel for each queue. */
#define QUEUE_LENGTH 8192
#define RECEIVE_BUFFER (64 << 20)
/* The table of flows of one queue. */
#define SETS 8192
#define WAYS 8

struct key {
	uint32_t address[2]; /* the lower socket first */
	uint16_t port[2];
	uint8_t protocol;
};

struct flow {
	struct key key;
	uint8_t packets;
	bool used, decided, denied;
	uint64_t last;
	struct ndpi_flow_struct *ndpi; /* until it is decided */
};

struct queue {
	pthread_t thread;
	struct nfq_handle *handle;
	struct nfq_q_handle *queue;
	struct ndpi_detection_module_struct *ndpi;
	struct flow (*flows)[WAYS];
	char (*messages)[MESSAGE];
	uint64_t now_ms;
	/* The run of accepted packets without a verdict yet, and its mark. */
	bool pending;
	uint32_t pending_id, pending_mark, pending_verdict;
	uint64_t packets, inspected, seen, known, refused;
};

static uint32_t copy_bytes = 0xffff;
static uint32_t decided_mark;
static const char *denied;
static struct sockaddr_in refuse;
static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Reads the addresses and ports of an IPv4 packet; 0 when it has none. */
static bool read_key(const uint8_t *packet, int length, struct key *key, bool *ends)
{
	const struct iphdr *ip = (const void *)packet;
	uint16_t ports[2];
	int header;

	if (length < (int)sizeof(*ip) || ip->version != 4)
		return false;
	header = ip->ihl * 4;
	if ((ip->protocol != IPPROTO_TCP && ip->protocol != IPPROTO_UDP) || length < header + 8 ||
	    (ntohs(ip->frag_off) & 0x1fff))
		return false;
	memcpy(ports, packet + header, sizeof(ports));
	memset(key, 0, sizeof(*key));
	int swap = ip->saddr > ip->daddr || (ip->saddr == ip->daddr && ports[0] > ports[1]);
	key->address[swap] = ip->saddr;
	key->address[!swap] = ip->daddr;
	key->port[swap] = ports[0];
	key->port[!swap] = ports[1];
	key->protocol = ip->protocol;
	*ends = ip->protocol == IPPROTO_TCP && length >= header + 14 &&
		(packet[header + 13] & (TH_FIN | TH_RST));
	return true;
}

static uint32_t hash(const struct key *key)
{
	uint64_t h = ((uint64_t)key->address[0] << 32 | key->address[1]) * 0x9e3779b97f4a7c15;

	h ^= h >> 29;
	h += (uint64_t)key->port[0] << 24 | (uint64_t)key->port[1] << 8 | key->protocol;
	h *= 0xbf58476d1ce4e5b9;
	return (h >> 40) % SETS;
}

static void forget(struct flow *flow)
{
	if (flow->ndpi)
		ndpi_flow_free(flow->ndpi);
	memset(flow, 0, sizeof(*flow));
}

/* The flow of a packet; a new one replaces the one that was silent longest. */
static struct flow *find(struct queue *queue, const struct key *key)
{
	struct flow *set = queue->flows[hash(key)], *oldest = set;

	for (int slot = 0; slot < WAYS; slot++) {
		if (set[slot].used && !memcmp(&set[slot].key, key, sizeof(*key)))
			return &set[slot];
		if (set[slot].last < oldest->last)
			oldest = &set[slot];
	}
	forget(oldest);
	oldest->key = *key;
	oldest->used = true;
	oldest->ndpi = ndpi_flow_malloc(SIZEOF_FLOW_STRUCT);
	if (!oldest->ndpi)
		die("memory for a flow");
	memset(oldest->ndpi, 0, SIZEOF_FLOW_STRUCT);
	queue->seen++;
	return oldest;
}

static void decide(struct queue *queue, struct flow *flow, bool known)
{
	ndpi_flow_free(flow->ndpi);
	flow->ndpi = NULL;
	flow->decided = true;
	queue->known += known;
}

/* What is to become of a packet: the verdict, and in *mark its mark. */
static int judge(struct queue *queue, const uint8_t *packet, int length, uint32_t *mark)
{
	const struct iphdr *ip = (const void *)packet;
	struct flow *flow;
	struct key key;
	bool ends;

	if (!read_key(packet, length, &key, &ends))
		return NF_ACCEPT;
	if (refuse.sin_port && ip->daddr == refuse.sin_addr.s_addr &&
	    !memcmp(packet + ip->ihl * 4 + 2, &refuse.sin_port, 2)) {
		queue->refused++;
		return NF_DROP;
	}
	flow = find(queue, &key);
	flow->last = queue->now_ms;
	if (!flow->decided) {
		ndpi_protocol found = ndpi_detection_process_packet(queue->ndpi, flow->ndpi, packet,
								    length, queue->now_ms);
		bool known = found.app_protocol != NDPI_PROTOCOL_UNKNOWN;

		queue->inspected++;
		if (known && denied &&
		    !strcasecmp(denied, ndpi_get_proto_name(queue->ndpi, found.app_protocol)))
			flow->denied = true;
		if (++flow->packets >= INSPECTED ||
		    (known && !ndpi_extra_dissection_possible(queue->ndpi, flow->ndpi)))
			decide(queue, flow, known);
	}
	if (flow->denied) {
		queue->refused++;
		return NF_DROP;
	}
	*mark = flow->decided ? decided_mark : 0;
	if (ends)
		flow->last = 0; /* the first to be replaced */
	return NF_ACCEPT;
}

/* Gives all packets up to the last one that was judged the verdict of that one: a run has one
 * verdict. */
static void flush(struct queue *queue)
{
	if (!queue->pending)
		return;
	if (queue->pending_mark)
		nfq_set_verdict_batch2(queue->queue, queue->pending_id, queue->pending_verdict,
				       queue->pending_mark);
	else
		nfq_set_verdict_batch(queue->queue, queue->pending_id, queue->pending_verdict);
	queue->pending = false;
}

static int received(struct nfq_q_handle *handle, struct nfgenmsg *message, struct nfq_data *data,
		    void *context)
{
	struct queue *queue = context;
	struct nfqnl_msg_packet_hdr *header = nfq_get_msg_packet_hdr(data);
	uint32_t id = ntohl(header->packet_id), mark = 0, verdict = NF_ACCEPT;
	uint8_t *packet;
	int length = nfq_get_payload(data, &packet);

	(void)handle;
	(void)message;
	queue->packets++;
	if (length > 0)
		verdict = judge(queue, packet, length, &mark);
	if (queue->pending && (queue->pending_verdict != verdict || queue->pending_mark != mark))
		flush(queue);
	queue->pending = true;
	queue->pending_id = id;
	queue->pending_mark = mark;
	queue->pending_verdict = verdict;
	return 0;
}

static void *run(void *context)
{
	struct queue *queue = context;
	struct mmsghdr headers[BATCH] = {};
	struct iovec parts[BATCH];
	struct timespec now;
	int fd = nfq_fd(queue->handle);

	for (int i = 0; i < BATCH; i++) {
		parts[i] = (struct iovec){queue->messages[i], MESSAGE};
		headers[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
	}
	while (!ended) {
		int count = recvmmsg(fd, headers, BATCH, MSG_WAITFORONE, NULL);

		if (count < 0) {
			if (errno != EINTR && errno != EAGAIN)
				die("receiving");
			continue;
		}
		clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
		queue->now_ms = now.tv_sec * 1000ull + now.tv_nsec / 1000000;
		for (int i = 0; i < count; i++)
			nfq_handle_packet(queue->handle, queue->messages[i], headers[i].msg_len);
		flush(queue);
	}
	return NULL;
}

static void open_queue(struct queue *queue, int number)
{
	struct timeval wait = {.tv_usec = 100000};
	int size = RECEIVE_BUFFER, one = 1;
	NDPI_PROTOCOL_BITMASK all;

	queue->ndpi = ndpi_init_detection_module(ndpi_no_prefs);
	queue->flows = calloc(SETS, sizeof(*queue->flows));
	queue->messages = malloc(BATCH * sizeof(*queue->messages));
	if (!queue->ndpi || !queue->flows || !queue->messages)
		die("memory");
	NDPI_BITMASK_SET_ALL(all);
	ndpi_set_protocol_detection_bitmask2(queue->ndpi, &all);
	ndpi_finalize_initialization(queue->ndpi);

	queue->handle = nfq_open();
	if (!queue->handle)
		die("opening a queue (root is needed)");
	queue->queue = nfq_create_queue(queue->handle, number, received, queue);
	if (!queue->queue)
		die("binding to a queue");
	if (nfq_set_mode(queue->queue, NFQNL_COPY_PACKET, copy_bytes) < 0)
		die("setting what is copied");
	if (nfq_set_queue_flags(queue->queue, NFQA_CFG_F_GSO, NFQA_CFG_F_GSO) < 0)
		die("keeping super-packets whole");
	if (nfq_set_queue_maxlen(queue->queue, QUEUE_LENGTH) < 0)
		die("setting the queue's length");
	int fd = nfq_fd(queue->handle);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) ||
	    setsockopt(fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, &one, sizeof(one)))
		die("setting the socket up");
}

/* Packets that the kernel dropped since a queue or its socket was full. */
static unsigned long dropped(void)
{
	FILE *file = fopen("/proc/net/netfilter/nfnetlink_queue", "r");
	unsigned long queue_full, socket_full, sum = 0;

	while (file &&
	       fscanf(file, "%*u %*u %*u %*u %*u %lu %lu %*u %*u", &queue_full, &socket_full) == 2)
		sum += queue_full + socket_full;
	if (file)
		fclose(file);
	return sum;
}

static void refuse_to(char *word)
{
	char *port = strrchr(word, ':');

	if (port) {
		*port++ = 0;
		refuse.sin_port = htons(atoi(port));
	}
	if (!refuse.sin_port || inet_pton(AF_INET, word, &refuse.sin_addr) != 1) {
		fprintf(stderr, "--refuse takes ADDRESS:PORT\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"copy", required_argument, NULL, 'c'},
	    {"mark", required_argument, NULL, 'm'},
	    {"refuse", required_argument, NULL, 'r'},
	    {"deny", required_argument, NULL, 'd'},
	    {},
	};
	static struct queue queues[MAX_QUEUES];
	uint64_t packets = 0, inspected = 0, seen = 0, known = 0, refused = 0;
	int option, count;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'c')
			copy_bytes = atoi(optarg);
		else if (option == 'm')
			decided_mark = atoi(optarg);
		else if (option == 'r')
			refuse_to(optarg);
		else if (option == 'd')
			denied = optarg;
		else
			return 2;
	}
	count = optind < argc ? atoi(argv[optind]) : 0;
	if (count < 1 || count > MAX_QUEUES) {
		fprintf(stderr, "how many queues? 1 to %d\n", MAX_QUEUES);
		return 2;
	}
	signal(SIGTERM, end);
	signal(SIGINT, end);
	for (int i = 0; i < count; i++)
		open_queue(&queues[i], i);
	for (int i = 0; i < count; i++)
		if (pthread_create(&queues[i].thread, NULL, run, &queues[i]))
			die("starting a thread");
	puts("ready");
	fflush(stdout);
	for (int i = 0; i < count; i++) {
		pthread_join(queues[i].thread, NULL);
		packets += queues[i].packets;
		inspected += queues[i].inspected;
		seen += queues[i].seen;
		known += queues[i].known;
		refused += queues[i].refused;
	}
	printf("{\"packets\": %lu, \"inspected\": %lu, \"flows\": %lu, \"known\": %lu, "
	       "\"refused\": %lu, "
	       "\"dropped\": %lu}\n",
	       packets, inspected, seen, known, refused, dropped());
	return 0;
}
