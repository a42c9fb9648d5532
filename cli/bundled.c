/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/bundled.h"

#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY_NAMES "libibverbs*.so*"
#define FILES_MOST    20000
#define OPEN_MOST     16
#define PYTHON	      "python"

static bool glob_one(const char *pattern, char found[PATH_MAX])
{
	glob_t g;
	bool got = glob(pattern, GLOB_NOSORT, NULL, &g) == 0 && g.gl_pathc > 0;

	if (got)
		snprintf(found, PATH_MAX, "%s", g.gl_pathv[0]);
	globfree(&g);
	return got;
}

/* Is the file a Python interpreter, of any version? */
static bool is_python(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strncmp(slash ? slash + 1 : path, PYTHON, strlen(PYTHON)) == 0;
}

bool vb_bundled_find(const char *path, char found[PATH_MAX])
{
	/* patterns of file names, relative to the directory of the program's
	 * file */
	static const char *const beside[] = {
		"/*.libs/" LIBRARY_NAMES,
		"/../*.libs/" LIBRARY_NAMES,
		/* the rest is searched only if the program is a Python */
		"/../lib/python3*/*-packages/*.libs/" LIBRARY_NAMES,
		"/../lib/python3*/*-packages/*/lib/" LIBRARY_NAMES,
	};
	const unsigned count = is_python(path) ? VB_COUNT(beside) : 2;
	const char *slash = strrchr(path, '/'), *home = getenv("HOME");
	char directory[PATH_MAX], pattern[PATH_MAX + 128];

	snprintf(directory, sizeof(directory), "%.*s",
		 slash ? (int)(slash - path) : 1, slash ? path : ".");
	for (unsigned i = 0; i < count; i++) {
		snprintf(pattern, sizeof(pattern), "%s%s", directory,
			 beside[i]);
		if (glob_one(pattern, found))
			return true;
	}
	if (!is_python(path))
		return false;
	snprintf(pattern, sizeof(pattern),
		 "%s/.local/lib/python3*/*-packages/*.libs/" LIBRARY_NAMES,
		 home ? home : "/nonexistent");
	return glob_one(pattern, found);
}

/* Where look_at_file() puts the path of the library that it finds. It is a
 * variable, because nftw() passes no argument of the caller to that function.
 */
static char *walk_found;
static unsigned walk_files;

static int look_at_file(const char *path, const struct stat *s, int type,
			struct FTW *where)
{
	const char *name = path + where->base;

	if (++walk_files > FILES_MOST)
		return -1;
	if (type == FTW_F && strncmp(name, "libibverbs", 10) == 0 &&
	    strstr(name, ".so")) {
		snprintf(walk_found, PATH_MAX, "%s", path);
		return 1;
	}
	return 0;
}

bool vb_bundled_walk(const char *path, char found[PATH_MAX])
{
	walk_found = found;
	walk_files = 0;
	return nftw(path, look_at_file, OPEN_MOST, FTW_PHYS) == 1;
}
