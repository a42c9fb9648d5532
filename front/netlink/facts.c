/* SPDX-License-Identifier: BSD-2-Clause */
/* Gathers the facts for an answer: devices from the tree of sysfs files,
 * objects from the census of all programs' rosters, counters from their files.
 */
#include "front/netlink/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LONGEST (64u << 20)

/* Read the whole file as text, which the caller frees. Returns NULL
 * and sets errno on failure. */
static char *read_text(int fd)
{
	struct stat s;
	char *text;
	ssize_t n;

	if (fstat(fd, &s) < 0)
		return NULL;
	if (s.st_size > LONGEST) {
		errno = EFBIG;
		return NULL;
	}
	text = malloc((size_t)s.st_size + 1);
	if (!text)
		return NULL;
	n = pread(fd, text, (size_t)s.st_size, 0);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

static int read_tree(const char *tree, struct vb_nl_facts *facts)
{
	char path[PATH_MAX], *text;
	int n = snprintf(path, sizeof(path), "%s/.contents", tree);
	int fd, rc;

	if (n >= PATH_MAX)
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	text = read_text(fd);
	rc = text ? vb_nl_read(text, facts) : -errno;
	close(fd);
	free(text);
	return rc;
}

int vb_nl_gather(const char *tree, unsigned need, struct vb_nl_facts *facts)
{
	int rc = 0;

	*facts = (struct vb_nl_facts){ 0 };
	if (need & NEED_DEVICES)
		rc = read_tree(tree, facts);
	if (rc == 0 && need & (NEED_SUMS | NEED_ROWS))
		rc = vb_census_take(&facts->census, need & NEED_ROWS);
	if (rc == 0 && need & NEED_COUNTERS)
		rc = vb_counter_file_read(&facts->files, &facts->counter_of);
	return rc;
}

void vb_nl_forget(struct vb_nl_facts *facts)
{
	free(facts->devices);
	vb_census_free(&facts->census);
	free(facts->files);
	*facts = (struct vb_nl_facts){ 0 };
}
