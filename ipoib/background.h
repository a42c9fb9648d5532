/* SPDX-License-Identifier: BSD-2-Clause */
/* Lets a process go on in the background once it serves. */
#ifndef IPOIB_BACKGROUND_H
#define IPOIB_BACKGROUND_H

/* Fork, before the process has a second thread. The parent waits until the
 * child is ready or has failed, and ends with that status. Returns only in
 * the child: a descriptor for background_ready(), or -errno. */
int background_fork(void);
/* Tell the parent that this process serves, and leave the terminal. */
void background_ready(int fd);

#endif
