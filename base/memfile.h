/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes as a descriptor, for a message that is too long for its socket. */
#ifndef BASE_MEMFILE_H
#define BASE_MEMFILE_H

#include "base/defs.h"

/* Copy @len bytes into a new memfd, which neither side can change or shorten
 * any more. Returns a close-on-exec descriptor that the caller closes, or
 * -errno. */
VB_MUST_CHECK int vb_memfile_make(const void *bytes, size_t len);

/* Is @fd a memfd that is sealed as vb_memfile_make() seals it, so that no
 * process can change its bytes or its length? The bytes of any other file may
 * change while the caller reads them, and reading them may block the caller. */
bool vb_memfile_is_sealed(int fd);

#endif
