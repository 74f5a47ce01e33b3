/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What bpf/gate.bpf.c and crates/datapath/src/gate share. The Rust side of these types is generated
 * from the program's BTF; sizes are asserted here and there. Integers are in host byte order unless
 * their comment says otherwise.
 */
#ifndef NIGH_ABI_GATE_H
#define NIGH_ABI_GATE_H

#include <linux/types.h>

/* Where a packet was seen; the index into gate_ledger. */
enum gate_hook {
	GATE_FROM_INTERNAL, /* TCX (or clsact) ingress of the internal interface */
	GATE_TO_INTERNAL,   /* egress of it */
	GATE_DRIVER,	    /* XDP of it */
	GATE_HOOKS,
};

/*
 * The outcome of a packet; the index into gate_counts.count. GATE_RECEIVED is the sum of all from
 * GATE_PASS_BYPASS up to GATE_UNREACHABLE. What follows is counted beside: packets that the gate
 * itself sends round again, and copies. A super-packet is one packet here.
 */
enum gate_count {
	GATE_RECEIVED,
	GATE_PASS_BYPASS,    /* passed: the gate is switched off */
	GATE_PASS_OTHER,     /* passed: neither TCP nor UDP over IP */
	GATE_PASS_FRAGMENT,  /* passed: a later fragment, the first was not seen */
	GATE_PASS_INTERNAL,  /* passed: it came from internal hosts, where it was judged */
	GATE_PASS_DECIDED,   /* passed: its flow may */
	GATE_PASS_UNDECIDED, /* passed: its flow is undecided */
	GATE_PASS_FAILURE,   /* passed: undecided, and user space is gone or late */
	GATE_DROP_FORM,	     /* dropped: its headers are cut short, so nobody knows its flow */
	GATE_DROP_VERDICT,   /* dropped: its flow is refused */
	GATE_DROP_CACHE,     /* dropped: begins what was refused before */
	GATE_DROP_FAILURE,   /* dropped: undecided, and user space is gone or late */
	GATE_DROP_RING,	     /* dropped: to be copied or held, and ring or table are full */
	GATE_HELD,	     /* taken from the kernel's path; user space has it */
	GATE_RESET_VERDICT,  /* turned into a reset for its sender: its flow is refused */
	GATE_RESET_CACHE,    /* the same: begins what was refused before */
	GATE_REDIRECTED,     /* passed, through the device where packets from internal hosts queue
			      */
	GATE_UNREACHABLE,    /* turned into an ICMP port unreachable for its sender */
	GATE_RELEASED,	     /* sent round by the gate: held before, or a reset */
	GATE_COPIED,	     /* copied out whole or in part, or held */
	GATE_MISSED,	     /* to be copied, but the ring is full */
	GATE_COUNTS,
};

struct gate_counts {
	__u64 count[GATE_COUNTS];
};

/* A host, as far as hosts have shares: an IPv4 address as in gate_key, or an IPv6 one's /64. */
struct gate_host {
	__u64 address[2];
};

/*
 * A flow's two sockets, the lower one first, bytewise by address and port; so both directions have
 * one key. All in network byte order; IPv4 addresses as IPv6 has them, ::ffff:a.b.c.d.
 */
struct gate_key {
	__u64 address[2][2];
	__be16 port[2];
	__u8 protocol; /* IPPROTO_TCP or IPPROTO_UDP */
	__u8 unused[3];
};

enum gate_action {
	GATE_UNDECIDED,
	GATE_PASS,
	GATE_DROP,
	GATE_RESET, /* and notify the sender, if the protocol can */
};

enum gate_limits {
	GATE_NOBODY = 2,		/* no index of a side: not known yet */
	GATE_HEARTBEAT_MS = 2000,	/* user space is gone when it was silent for so long */
	GATE_MARK = 0x6e676174,		/* the mark of packets that the gate sends round */
	GATE_MARK_BACK = 0x6e676175,	/* of those that are to come in from internal hosts again */
	GATE_CLASSES = 0x6e690000,	/* major number of the classes that packets queue in */
	GATE_UNREACHABLES = 16,		/* ICMP errors that are sent at most within one jiffy */
	GATE_RESETS = 16,		/* segments of a side that go on as resets at most */
	GATE_INTERNALS = 8,		/* internal interfaces */
	GATE_QUEUE_BEHIND = 0xffffffff, /* see struct gate_control */
	GATE_RECORD_LARGEST = 0x10800,	/* bytes of the largest record */
	GATE_WINDOW = 0x10000,		/* see GATE_BRIEF */
	GATE_TCP_WINDOW = 1 << 30,	/* bytes that a receiver of TCP takes ahead (RFC 7323) */
};

/* How the packets of one side of a flow that may pass are treated; bits. */
enum gate_manage {
	GATE_COPY = 1, /* copied whole */
	GATE_SKIP =
	    2, /* but not what ends at or before skip_to, and of a super-packet only the rest */
	/*
	 * What reaches beyond hold_from is held (UDP: everything), and what overlaps bytes that its
	 * receiver has not acknowledged.
	 */
	GATE_HOLD = 4,
	/*
	 * A message begins soon behind skip_to: of super-packets that do not begin within
	 * GATE_WINDOW bytes behind it only the beginning is copied; without GATE_SKIP of all.
	 */
	GATE_BRIEF = 8,
};

/* One side of a flow: what it has sent. */
struct gate_side {
	__u64 packets; /* as on the wire: segments of a super-packet count each */
	__u64 bytes;   /* of IP packets, headers included */
	__u32 first;   /* TCP: the sequence number of its SYN, if that was seen */
	__u32 skip_to;
	__u32 hold_from;
	__u32 tcp_flags; /* all that were seen */
	__u32 manage;	 /* enum gate_manage */
	__u32 resets;	 /* refused segments that went on as resets */
	__u32 taken;	 /* the last acknowledgement number that it has sent */
	__u32 reach;	 /* behind the last byte that it has sent */
};

struct gate_flow {
	__u64 began_ns; /* of CLOCK_MONOTONIC_COARSE, as all times here */
	__u64 seen_ns;	/* of the last packet */
	__u32 label;	/* user space's number for what it is */
	__u32 copied;	/* first packets with payload that were copied */
	__u32 budget;	/* how many may be */
	__u16 limit;	/* class for its packets; 0: none */
	__u8 action;	/* enum gate_action */
	__u8 client;	/* which side began, or GATE_NOBODY */
	__u8 internal;	/* which side is internal, or GATE_NOBODY */
	__u8 refused;	/* fresh: an enum gate_action that gate_decided has no room for */
	__u8 spoke;	/* fresh: there was payload */
	__u8 unused;
	__u32 ifindex; /* the internal interface where it was seen first */
	struct gate_side side[2];
};

/* Refused before: who, to whom, without the source port. */
struct gate_refusal_key {
	__u64 source[2];
	__u64 target[2];
	__be16 port;
	__u8 protocol;
	__u8 unused[5];
};

struct gate_refusal {
	__u64 until_ns; /* of CLOCK_MONOTONIC_COARSE */
	__u64 refused;	/* packets */
	__u32 action;	/* GATE_DROP or GATE_RESET */
	__u32 unused;
};

/* A fragmented packet; its value is the flow's key and which side sent it. */
struct gate_fragment_key {
	__u64 source[2];
	__u64 target[2];
	__be32 id;
	__u8 protocol;
	__u8 unused[3];
};

struct gate_fragment {
	struct gate_key key;
	__u32 from;
	__u32 unused;
};

/* Settings by user space; written whole, every word by itself. */
struct gate_control {
	__u64 heartbeat_ns; /* when it last lived, of CLOCK_MONOTONIC_COARSE */
	__u32 bypass;	    /* everything passes */
	__u32 drop_on_failure;
	__u32 budget; /* first packets with payload that are copied of a flow */
	__u32 hold;   /* what is undecided is held */
	/*
	 * The device where what comes from internal hosts queues; 0: none. GATE_QUEUE_BEHIND: the
	 * filter behind this program sends it there, as gate_limited says.
	 */
	__u32 queue;
	__u32 internal[GATE_INTERNALS]; /* the internal interfaces, the rest 0 */
	__u32 version;			/* of what is kept: a sum of this file and gate_state.h */
};

/* Why a record was made. */
enum gate_reason {
	GATE_FIRST,   /* one of a flow's first packets with payload */
	GATE_MANAGED, /* to be copied */
	GATE_AWAITS,  /* held: user space releases it or not */
	GATE_ENDED,   /* its sockets began a new connection: behind this is the flow as it was */
};

enum gate_record_flag {
	GATE_PARTIAL = 1,    /* its transport checksum is the sum of the pseudo header only */
	GATE_UNVERIFIED = 2, /* nobody has looked whether its transport checksum is right */
	GATE_FRAGMENT = 4,   /* a fragment; without a transport header if it is not the first */
	GATE_TAKEN = 8,	     /* its receiver has acknowledged something: see taken */
};

/*
 * What is copied out: this, then the frame as far as it was copied. Of a super-packet that begins
 * before skip_to and reaches beyond it follows the payload alone, from there on; payload and
 * sequence number are those of that part.
 */
struct gate_record {
	struct gate_key key;
	__u64 at_ns;   /* of CLOCK_BOOTTIME */
	__u32 length;  /* of the frame */
	__u32 copied;  /* bytes of it behind this header */
	__u32 payload; /* where its payload begins */
	__u32 payload_length;
	__u32 sequence; /* TCP's header */
	__u32 acknowledgement;
	__u32 ifindex;	/* the internal interface */
	__u32 first[2]; /* sequence numbers of both sides' SYN, 0: not seen */
	__u32 number;	/* how many of the flow's first packets were copied before */
	__u32 label;
	__u16 gso_size;
	__u16 transport;      /* where the transport header begins */
	__u16 vlan_tci;	      /* the tag that the kernel has taken out of the frame */
	__be16 vlan_protocol; /* 0: none */
	__u8 tcp_flags;
	__u8 from; /* which side sent it */
	__u8 client;
	__u8 internal;
	__u8 reason; /* enum gate_reason */
	__u8 hook;   /* enum gate_hook */
	__u8 action; /* of the flow */
	__u8 flags;  /* enum gate_record_flag */
	__u32 taken; /* the receiver's last acknowledgement number */
	__u8 data[];
};

/* What user space asks the program gate_order for, which changes flows where they are. */
enum gate_order {
	GATE_ORDER_DECIDE, /* action, limit, label; a fresh flow becomes a decided one */
	GATE_ORDER_BOTH,   /* the same, and the interest in both sides, at once */
	GATE_ORDER_MANAGE, /* the interest in both sides */
	GATE_ORDER_BUDGET, /* budget of a fresh flow */
	GATE_ORDER_SETTLE, /* takes over what was counted for the fresh flow, which goes */
};

enum gate_answer {
	GATE_DONE,
	GATE_NO_FLOW,
	GATE_FULL,
};

/* What user space wants to see of a side; see struct gate_side. */
struct gate_interest {
	__u32 manage;
	__u32 skip_to;
	__u32 hold_from;
};

struct gate_request {
	struct gate_key key;
	__u32 order;
	__u32 label;
	__u32 budget;
	struct gate_interest interest[2];
	__u16 limit;
	__u8 action;
	__u8 unused;
};

_Static_assert(sizeof(struct gate_host) == 16, "gate_host");
_Static_assert(sizeof(struct gate_key) == 40, "gate_key");
_Static_assert(sizeof(struct gate_side) == 48, "gate_side");
_Static_assert(sizeof(struct gate_flow) == 136, "gate_flow");
_Static_assert(sizeof(struct gate_refusal_key) == 40, "gate_refusal_key");
_Static_assert(sizeof(struct gate_refusal) == 24, "gate_refusal");
_Static_assert(sizeof(struct gate_fragment_key) == 40, "gate_fragment_key");
_Static_assert(sizeof(struct gate_fragment) == 48, "gate_fragment");
_Static_assert(sizeof(struct gate_control) == 64, "gate_control");
_Static_assert(sizeof(struct gate_record) == 112, "gate_record");
_Static_assert(sizeof(struct gate_request) == 80, "gate_request");

#endif
