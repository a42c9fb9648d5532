/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of `verbena doctor`. Each adds its findings (cli/finding.h), and
 * works as an ordinary user, without /proc and without a broker. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include "cli/ports.h"

/* Examine the kernel, /proc, limits, namespaces, and the directory of the
 * user's files. */
void vb_doctor_host(void);
/* Examine whether two programs of this host can copy to each other. */
void vb_doctor_one_host(void);
/* Find the programs that hold UDP port 4791, and the broker. */
void vb_doctor_port(void);
/* Examine the adapters of fabrics: the fabric's process, ports, partitions.
 * Returns how many adapters there are. */
unsigned vb_doctor_fabrics(void);
/* Examine devices, addresses and MTU. */
void vb_doctor_devices(const struct vb_cli_ports *p);
/* Examine the rules of this host's firewall (cli/doctor_rules.c). */
void vb_doctor_rules(void);
/* Examine the firewall, and send packets from an address of this host to
 * itself. */
void vb_doctor_firewall(const struct vb_cli_ports *p);
/* Send packets to @peer, a name or an address, and wait for the echoes. */
void vb_doctor_peer(const struct vb_cli_ports *p, const char *peer);
/* Find the libraries that @program would load. */
void vb_doctor_program(const char *program);

/* Claim a slot for @seconds, so that this host's broker answers `verbena doctor
 * PEER` of other hosts. Returns an exit status. */
int vb_doctor_answer(double seconds);

/* Read the file @path, at most @room - 1 bytes, and end it with a NUL. False:
 * it cannot be read. */
bool vb_doctor_read(const char *path, char *text, size_t room);
/* Run argv[0] with its output into @text, at most @room - 1 bytes, for at most
 * @limit. False: it cannot be run, or fails, or takes longer, or writes more;
 * @text then has what it wrote. */
bool vb_doctor_run(const char *const argv[], const char *const env[],
		   vb_time limit, char *text, size_t room);

#endif
