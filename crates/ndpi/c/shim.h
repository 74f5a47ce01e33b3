// SPDX-License-Identifier: MIT OR Apache-2.0
// What Rust calls of nDPI: structs of nDPI stay on this side, only numbers and opaque pointers cross.
// src/ffi.rs says the same in Rust.
#ifndef NIGH_NDPI_SHIM_H
#define NIGH_NDPI_SHIM_H

#include <stddef.h>
#include <stdint.h>

// What nDPI says of a flow.
struct nigh_ndpi_answer {
	uint16_t master;    // the carrying protocol, 0 without
	uint16_t app;       // the application, 0 when it is not known
	uint8_t category;   // ndpi_protocol_category_t
	uint8_t confidence; // ndpi_confidence_t
	uint8_t more;       // whether further packets can say more of a known application
};

// Whether the library that runs fits the headers that this was compiled with: 1 when it does.
int nigh_ndpi_check(void);

// A detector with all protocols on, or NULL. Open and close are never called at the same time.
void *nigh_ndpi_open(void);
void nigh_ndpi_close(void *detector);

// A flow that saw nothing yet, or NULL.
void *nigh_ndpi_flow_new(void);
void nigh_ndpi_flow_free(void *flow);

// Shows one IP packet; `packet` is written to by some parsers.
void nigh_ndpi_packet(void *detector, void *flow, uint8_t *packet, uint16_t length, uint64_t at_ms,
		      struct nigh_ndpi_answer *answer);
// Asks for the last word without guessing by port.
void nigh_ndpi_give_up(void *detector, void *flow, struct nigh_ndpi_answer *answer);
// The application of a host's name.
void nigh_ndpi_host(void *detector, char *name, uint32_t length, struct nigh_ndpi_answer *answer);

// The host that a flow's parsers have read: SNI, HTTP's Host, the name asked of DNS. Ends with a NUL
// within 80 bytes.
const char *nigh_ndpi_flow_host(const void *flow, size_t *size);
// The name of a protocol, or NULL.
const char *nigh_ndpi_name(void *detector, uint16_t protocol);
// How many protocols there are.
uint32_t nigh_ndpi_count(void *detector);

#endif
