// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Answers ICMPv4 and ICMPv6 echo requests for the configured addresses where the driver hands the
 * frame over (XDP): RFC 792, RFC 1122 section 3.2.2.6, RFC 4443 sections 4.1 and 4.2.
 *
 * A frame goes through echo_responder() in include/echo.h; this file only makes a program of it.
 */
#include "include/echo.h"

SEC("xdp")
int echo(struct xdp_md *ctx)
{
	return echo_responder(ctx);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
