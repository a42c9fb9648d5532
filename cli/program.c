/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Examines a program's file before `verbena run` executes it. Some programs
 * cannot load Verbena's libraries, and without a warning their users would only
 * see that there is no device. The file may have any content, so this file
 * reads a bounded part of it.
 */
#include "cli/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/defs.h"

#define MOST_HEADERS 128
#define MOST_DYNAMIC 4096
/* the most scripts whose interpreter is a script; the kernel has the same
 * limit */
#define MOST_SCRIPTS 4
#define SCRIPT_LINE  256
/* the directories that execvp() searches when PATH is not set */
#define DEFAULT_PATH	"/bin:/usr/bin"
#define MUSL		"ld-musl"
#define GLIBC		"ld-linux"
#define CAPABILITY_NAME "security.capability"

/* ELF's number for the machine that this command and the libraries were built
 * for. */
#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#else
#define OUR_MACHINE EM_NONE
#endif

static bool is_program_file(const char *path)
{
	struct stat s;

	return access(path, X_OK) == 0 && stat(path, &s) == 0 &&
	       S_ISREG(s.st_mode);
}

bool vb_program_find(const char *name, char path[PATH_MAX])
{
	const char *list = getenv("PATH");

	if (strchr(name, '/')) {
		snprintf(path, PATH_MAX, "%s", name);
		return strlen(name) < PATH_MAX && is_program_file(path);
	}
	for (const char *at = list ? list : DEFAULT_PATH; at;) {
		size_t length = strcspn(at, ":");
		int n = snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, at,
				 length ? "/" : "", name);

		if (n > 0 && n < PATH_MAX && is_program_file(path))
			return true;
		at = at[length] ? at + length + 1 : NULL;
	}
	return false;
}

/* Functions for scripts, whose first line names an interpreter. */

static char *next_word(char **rest)
{
	char *word = *rest + strspn(*rest, " \t");
	size_t length = strcspn(word, " \t");

	*rest = word + length;
	if (**rest)
		*(*rest)++ = '\0';
	return *word ? word : NULL;
}

static bool is_env(const char *interpreter)
{
	const char *slash = strrchr(interpreter, '/');

	return strcmp(slash ? slash + 1 : interpreter, "env") == 0;
}

/* If the file is a script, set @path to its interpreter, or, if that is env(1),
 * to the program that env runs. False: not a script. */
static bool follow_script(int fd, char path[PATH_MAX])
{
	char line[SCRIPT_LINE + 1], *rest = line + 2, *program, *argument;
	ssize_t n = pread(fd, line, SCRIPT_LINE, 0);

	if (n < 2 || line[0] != '#' || line[1] != '!')
		return false;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	program = next_word(&rest);
	if (!program)
		return false;
	argument = is_env(program) ? next_word(&rest) : NULL;
	if (argument && *argument != '-' && !strchr(argument, '='))
		return vb_program_find(argument, path);
	snprintf(path, PATH_MAX, "%s", program);
	return true;
}

/* Open the file that the kernel executes in the end: @name itself, or a
 * script's interpreter. -1: not found; exec() will report why. */
static int open_program(const char *name, char path[PATH_MAX])
{
	if (!vb_program_find(name, path))
		return -1;
	for (unsigned i = 0; i < MOST_SCRIPTS; i++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

		/* The user may execute the file but not read it. O_PATH still
		 * shows the file's mode and owner. */
		if (fd < 0)
			return open(path, O_PATH | O_CLOEXEC);
		if (!follow_script(fd, path))
			return fd;
		close(fd);
	}
	return -1;
}

/* Functions that read ELF files. */

static bool read_at(int fd, void *to, size_t size, uint64_t at)
{
	return at <= INT64_MAX - size &&
	       pread(fd, to, size, (off_t)at) == (ssize_t)size;
}

/* Read the loader's name, and judge the program by it. */
static enum vb_program_kind judge_loader(int fd, const Elf64_Phdr *h,
					 char loader[PATH_MAX])
{
	size_t size = VB_MIN(h->p_filesz, PATH_MAX - 1);
	const char *slash, *base;

	if (!read_at(fd, loader, size, h->p_offset)) {
		loader[0] = '\0';
		return PROGRAM_NO_ELF;
	}
	loader[size] = '\0';
	slash = strrchr(loader, '/');
	base = slash ? slash + 1 : loader;
	if (strncmp(base, MUSL, strlen(MUSL)) == 0)
		return PROGRAM_MUSL;
	return strncmp(base, GLIBC, strlen(GLIBC)) == 0 ? PROGRAM_PLAIN
							: PROGRAM_OTHER_LOADER;
}

/* Does the dynamic section have a DT_SONAME? Then the file is a shared object,
 * and one that can be executed is most often a dynamic loader. */
static bool has_soname(int fd, const Elf64_Phdr *h)
{
	Elf64_Dyn entry;

	for (unsigned i = 0; i < MOST_DYNAMIC; i++) {
		if (!read_at(fd, &entry, sizeof(entry),
			     h->p_offset + i * sizeof(entry)) ||
		    entry.d_tag == DT_NULL)
			return false;
		if (entry.d_tag == DT_SONAME)
			return true;
	}
	return false;
}

static enum vb_program_kind judge_headers(int fd, const Elf64_Ehdr *e,
					  char loader[PATH_MAX])
{
	bool shared = false;
	Elf64_Phdr h;

	if (e->e_phentsize != sizeof(h) || e->e_phnum > MOST_HEADERS)
		return PROGRAM_NO_ELF;
	for (unsigned i = 0; i < e->e_phnum; i++) {
		if (!read_at(fd, &h, sizeof(h), e->e_phoff + i * sizeof(h)))
			return PROGRAM_NO_ELF;
		if (h.p_type == PT_INTERP)
			return judge_loader(fd, &h, loader);
		if (h.p_type == PT_DYNAMIC)
			shared = shared || has_soname(fd, &h);
	}
	return shared ? PROGRAM_PLAIN : PROGRAM_STATIC;
}

static bool is_machine(const Elf64_Ehdr *e)
{
	const unsigned char *id = e->e_ident;
	unsigned data = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB
								  : ELFDATA2MSB;

	return id[EI_CLASS] == ELFCLASS64 && id[EI_DATA] == data &&
	       (OUR_MACHINE == EM_NONE || e->e_machine == OUR_MACHINE);
}

static enum vb_program_kind judge(int fd, char loader[PATH_MAX])
{
	int flags = fcntl(fd, F_GETFL);
	Elf64_Ehdr e;

	if (flags < 0 || flags & O_PATH)
		return PROGRAM_UNREADABLE;
	if (!read_at(fd, &e, sizeof(e), 0) ||
	    memcmp(e.e_ident, ELFMAG, SELFMAG) != 0)
		return PROGRAM_NO_ELF;
	return is_machine(&e) ? judge_headers(fd, &e, loader) : PROGRAM_FOREIGN;
}

/* Functions that look for privileges that a program's file gives. */

static bool has_capabilities(int fd)
{
	struct vfs_cap_data c = { 0 };

	if (fgetxattr(fd, CAPABILITY_NAME, &c, sizeof(c)) <= 0)
		return false;
	return c.magic_etc & VFS_CAP_FLAGS_EFFECTIVE || c.data[0].permitted ||
	       c.data[1].permitted;
}

static enum vb_privilege privilege_of(int fd)
{
	struct statvfs v;
	struct stat s;

	if (fstat(fd, &s) < 0 || fstatvfs(fd, &v) < 0 || v.f_flag & ST_NOSUID ||
	    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return PRIVILEGE_NONE;
	if (s.st_mode & S_ISUID && s.st_uid != getuid())
		return PRIVILEGE_USER;
	if ((s.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
	    s.st_gid != getgid())
		return PRIVILEGE_GROUP;
	return getuid() != 0 && has_capabilities(fd) ? PRIVILEGE_CAPABILITIES
						     : PRIVILEGE_NONE;
}

void vb_program_look(const char *name, struct vb_program *p)
{
	int fd = open_program(name, p->path);

	p->loader[0] = '\0';
	p->kind = PROGRAM_UNREADABLE;
	p->privilege = PRIVILEGE_NONE;
	if (fd < 0)
		return;
	p->kind = judge(fd, p->loader);
	p->privilege = privilege_of(fd);
	close(fd);
}
