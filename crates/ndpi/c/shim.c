// SPDX-License-Identifier: MIT OR Apache-2.0
// See shim.h.
#include "shim.h"

#include <ndpi_api.h>
#include <stdio.h>

static void answer_of(struct ndpi_detection_module_struct *detector, struct ndpi_flow_struct *flow,
		      ndpi_protocol found, struct nigh_ndpi_answer *answer)
{
	answer->master = found.master_protocol;
	answer->app = found.app_protocol;
	answer->category = (uint8_t)found.category;
	answer->confidence = (uint8_t)flow->confidence;
	answer->more = found.app_protocol != NDPI_PROTOCOL_UNKNOWN &&
		       ndpi_extra_dissection_possible(detector, flow) != 0;
}

int nigh_ndpi_check(void)
{
	int major = 0, minor = 0;

	// NDPI_API_VERSION is no version: it is another number in each build of the same source.
	return sscanf(ndpi_revision(), "%d.%d", &major, &minor) == 2 && major == NDPI_MAJOR &&
	       minor == NDPI_MINOR &&
	       ndpi_detection_get_sizeof_ndpi_flow_struct() == SIZEOF_FLOW_STRUCT &&
	       ndpi_detection_get_sizeof_ndpi_flow_tcp_struct() ==
		   sizeof(struct ndpi_flow_tcp_struct) &&
	       ndpi_detection_get_sizeof_ndpi_flow_udp_struct() ==
		   sizeof(struct ndpi_flow_udp_struct);
}

void *nigh_ndpi_open(void)
{
	// The hosts of Tor age faster than a library is replaced; what is read of a flow decides.
	struct ndpi_detection_module_struct *detector =
	    ndpi_init_detection_module(ndpi_dont_load_tor_hosts);
	NDPI_PROTOCOL_BITMASK all;

	if (!detector)
		return NULL;
	// What is set below has as many bits as the headers say: no more protocols may be known.
	if (ndpi_get_num_supported_protocols(detector) > NDPI_NUM_BITS) {
		ndpi_exit_detection_module(detector);
		return NULL;
	}
	NDPI_BITMASK_SET_ALL(all);
	ndpi_set_protocol_detection_bitmask2(detector, &all);
	ndpi_finalize_initialization(detector);
	return detector;
}

void nigh_ndpi_close(void *detector)
{
	ndpi_exit_detection_module(detector);
}

void *nigh_ndpi_flow_new(void)
{
	void *flow = ndpi_flow_malloc(SIZEOF_FLOW_STRUCT);

	if (flow)
		memset(flow, 0, SIZEOF_FLOW_STRUCT);
	return flow;
}

void nigh_ndpi_flow_free(void *flow)
{
	ndpi_free_flow(flow);
}

void nigh_ndpi_packet(void *detector, void *flow, uint8_t *packet, uint16_t length, uint64_t at_ms,
		      struct nigh_ndpi_answer *answer)
{
	ndpi_protocol found = ndpi_detection_process_packet(detector, flow, packet, length, at_ms);

	answer_of(detector, flow, found, answer);
}

void nigh_ndpi_give_up(void *detector, void *flow, struct nigh_ndpi_answer *answer)
{
	uint8_t guessed = 0;
	ndpi_protocol found = ndpi_detection_giveup(detector, flow, 0, &guessed);

	answer_of(detector, flow, found, answer);
	answer->more = 0;
}

void nigh_ndpi_host(void *detector, char *name, uint32_t length, struct nigh_ndpi_answer *answer)
{
	ndpi_protocol_match_result match;
	int found;

	memset(&match, 0, sizeof(match));
	memset(answer, 0, sizeof(*answer));
	found = ndpi_match_string_subprotocol(detector, name, length, &match);
	if (found <= NDPI_PROTOCOL_UNKNOWN || found > UINT16_MAX)
		return;
	answer->app = (uint16_t)found;
	answer->category = (uint8_t)match.protocol_category;
	answer->confidence = NDPI_CONFIDENCE_MATCH_BY_IP;
}

const char *nigh_ndpi_flow_host(const void *flow, size_t *size)
{
	const struct ndpi_flow_struct *known = flow;

	*size = sizeof(known->host_server_name);
	return known->host_server_name;
}

const char *nigh_ndpi_name(void *detector, uint16_t protocol)
{
	return ndpi_get_proto_name(detector, protocol);
}

uint32_t nigh_ndpi_count(void *detector)
{
	return ndpi_get_num_supported_protocols(detector);
}
