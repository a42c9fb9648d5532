/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet managers that a fabric starts by itself: opensm, one in each
 * subnet, in a switch if there is a switch. The fabric starts opensm by
 * `verbena run`, with caches, configuration and log of its own. The kernel
 * kills opensm when this process dies.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "fabricd/fabricd_priv.h"
#include "fabricd/subnets.h"
#include "fabricd/topology_priv.h"

#define PROGRAM "opensm"
/* name of the directory of opensm's caches and configuration */
#define FILES "sm"
/* If opensm has run for this long, earlier deaths no longer count. */
#define LIVED	    (60 * VB_SEC)
#define DEATHS_MOST 5
/* pause before opensm is started for the second time; each later pause is twice
 * as long as the one before */
#define FIRST_PAUSE (200 * VB_MSEC)

struct fd_manager {
	struct fd_manager *next; /* the manager of the next subnet */
	unsigned subnet;	 /* number of the subnet, from 1 */
	/* watches a pidfd of opensm; fd -1: opensm does not run */
	struct fd_watch watch;
	struct fd_later again;
	struct vb_fabricd *f;
	pid_t pid;
	vb_time started;
	/* number of opensm's deaths without a run of LIVED between them */
	unsigned deaths;
	/* this process has asked opensm to end, so it is not started again */
	bool stopping;
	char self[PATH_MAX], opensm[PATH_MAX], place[256];
	char files[PATH_MAX], config[PATH_MAX], log[PATH_MAX];
	char routes[PATH_MAX]; /* the file of opensm's prefix routes */
};

/* opensm's configuration, as far as it differs from opensm's defaults. The
 * defaults are meant for a network that a subnet manager must not disturb.
 * Here, a line of the log must be readable at once, and another subnet manager
 * must take over within seconds. */
static const char config_text[] = "force_log_flush TRUE\n"
				  /* most MB that the log may have */
				  "log_max_size 8\n"
				  "sweep_interval 5\n"
				  "sminfo_polling_timeout 500\n"
				  "polling_retry_number 2\n"
				  "transaction_timeout 500\n";

/* --- finding the program --- */

static bool find_in(const char *directories, char path[PATH_MAX])
{
	for (const char *d = directories; d && *d;) {
		size_t len = strcspn(d, ":");
		int n = snprintf(path, PATH_MAX, "%.*s/" PROGRAM, (int)len, d);

		if (len && n < PATH_MAX && access(path, X_OK) == 0)
			return true;
		d += len + (d[len] == ':');
	}
	return false;
}

bool vb_fabricd_find_opensm(char path[PATH_MAX])
{
	/* Debian has opensm in /usr/sbin, which is not in an ordinary user's
	 * PATH. */
	return find_in(getenv("PATH"), path) ||
	       find_in("/usr/local/sbin:/usr/sbin:/sbin", path);
}

/* --- opensm's files --- */

static int write_config(const struct fd_manager *m, const struct vb_subnets *s)
{
	FILE *to = fopen(m->config, "we");

	if (!to)
		return -errno;
	fputs(config_text, to);
	if (s->routed)
		fprintf(to, "subnet_prefix %#jx\nprefix_routes_file %s\n",
			(uintmax_t)(VB_SUBNETS_PREFIX + m->subnet - 1),
			m->routes);
	return fclose(to) ? -errno : 0;
}

static int write_routes(const struct fd_manager *m, const struct vb_subnets *s)
{
	FILE *to = fopen(m->routes, "we");

	if (!to)
		return -errno;
	vb_subnets_put_routes(s, m->subnet, to);
	return fclose(to) ? -errno : 0;
}

/* Name the files of opensm. Those of the first subnet have no number. */
static bool name_files(struct fd_manager *m)
{
	const char *dir = m->f->dir;
	char number[16] = "", behind[16] = "";

	if (m->subnet > 1) {
		snprintf(number, sizeof(number), "%u", m->subnet);
		snprintf(behind, sizeof(behind), "-%u", m->subnet);
	}
	return snprintf(m->files, PATH_MAX, "%s/" FILES "%s", dir, number) <
		       PATH_MAX &&
	       snprintf(m->config, PATH_MAX, "%s/" FILES "%s/opensm.conf", dir,
			number) < PATH_MAX &&
	       snprintf(m->routes, PATH_MAX, "%s/" FILES "%s/prefix-routes",
			dir, number) < PATH_MAX &&
	       snprintf(m->log, PATH_MAX, "%s%s.log", dir, behind) < PATH_MAX;
}

/* Make the directory and the files for opensm. The log of an earlier fabric is
 * emptied. */
static int make_files(struct fd_manager *m, const struct vb_subnets *s)
{
	int log, rc;

	if (!name_files(m))
		return -ENAMETOOLONG;
	if (mkdir(m->files, 0700) < 0 && errno != EEXIST)
		return -errno;
	log = open(m->log,
		   O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (log < 0)
		return -errno;
	close(log);
	rc = write_config(m, s);
	return rc ? rc : write_routes(m, s);
}

static void remove_files(const struct fd_manager *m)
{
	DIR *d = opendir(m->files);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			(void)unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	(void)rmdir(m->files);
}

/* --- the process --- */

/* Called in the child: become opensm, in a process group of its own, because
 * Ctrl-C in a terminal is meant for the fabric, which then ends opensm. */
static void become_manager(const struct fd_manager *m, pid_t parent)
{
	int log = open(m->log, O_WRONLY | O_APPEND | O_CLOEXEC);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigset_t none;

	/* The kernel kills opensm when the fabric dies. SIGTERM would not do:
	 * opensm would then wait for answers of the dead fabric. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	(void)setpgid(0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(null, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
	    dup2(log, STDERR_FILENO) < 0 ||
	    setenv("OSM_CACHE_DIR", m->files, 1) ||
	    setenv("OSM_TMP_DIR", m->files, 1))
		_exit(EXIT_FAILURE);
	execl(m->self, "verbena", "run", "--device", m->place, "--", m->opensm,
	      "-F", m->config, "-f", m->log, (char *)NULL);
	_exit(EXIT_FAILURE);
}

static int start_manager(struct fd_manager *m)
{
	pid_t parent = getpid();
	int rc;

	m->pid = fork();
	if (m->pid < 0)
		return -errno;
	if (m->pid == 0)
		become_manager(m, parent);
	m->started = vb_clock_read();
	m->watch.fd = (int)syscall(SYS_pidfd_open, m->pid, 0);
	rc = m->watch.fd < 0
		     ? -errno
		     : vb_fabricd_watch(m->f, &m->watch, EPOLLIN, false);
	if (rc) {
		kill(m->pid, SIGKILL);
		(void)waitpid(m->pid, NULL, 0);
		m->pid = 0;
	}
	return rc;
}

static void give_up_manager(struct fd_manager *m, const char *why)
{
	vb_log(LOG_ERROR,
	       "fabric: %s: the fabric goes on without a subnet manager; its "
	       "log is %s",
	       why, m->log);
}

static void start_again(struct fd_later *l, vb_time now)
{
	struct fd_manager *m = VB_CONTAINER_OF(l, struct fd_manager, again);
	int rc = start_manager(m);

	if (rc)
		give_up_manager(m, strerror(-rc));
}

static void say_end(const struct fd_manager *m, int status)
{
	if (WIFSIGNALED(status))
		vb_log(LOG_WARN,
		       "fabric: " PROGRAM " was ended by signal %d; its log is "
		       "%s",
		       WTERMSIG(status), m->log);
	else
		vb_log(LOG_WARN,
		       "fabric: " PROGRAM
		       " ended with status %d; its log is %s",
		       WEXITSTATUS(status), m->log);
}

static bool is_any_running(const struct vb_fabricd *f)
{
	for (const struct fd_manager *m = f->managers; m; m = m->next)
		if (m->pid > 0)
			return true;
	return false;
}

static void manager_ended(struct fd_watch *w, uint32_t events, vb_time now)
{
	struct fd_manager *m = VB_CONTAINER_OF(w, struct fd_manager, watch);
	int status;

	if (waitpid(m->pid, &status, WNOHANG) <= 0)
		return;
	close(w->fd);
	w->fd = -1;
	m->pid = 0;
	if (m->stopping) {
		m->f->ended = !is_any_running(m->f);
		return;
	}
	say_end(m, status);
	m->deaths = now - m->started > LIVED ? 1 : m->deaths + 1;
	if (m->deaths > DEATHS_MOST)
		give_up_manager(m, PROGRAM " ended again and again");
	else
		vb_fabricd_later(m->f, &m->again,
				 now + (FIRST_PAUSE << (m->deaths - 1)));
}

/* --- what other files of the process call --- */

bool vb_fabricd_is_managed(const struct vb_fabricd *f)
{
	for (const struct fd_manager *m = f->managers; m; m = m->next)
		if (m->deaths > DEATHS_MOST)
			return false;
	return f->managers;
}

bool vb_fabricd_is_manager(const struct vb_fabricd *f, pid_t pid)
{
	for (const struct fd_manager *m = f->managers; m; m = m->next)
		if (pid > 0 && m->pid == pid)
			return true;
	return false;
}

bool vb_fabricd_stop_managers(struct vb_fabricd *f)
{
	bool any = false;

	for (struct fd_manager *m = f->managers; m; m = m->next) {
		m->stopping = true;
		vb_fabricd_never(f, &m->again);
		any |= m->pid > 0 && kill(m->pid, SIGTERM) == 0;
	}
	return any;
}

static void end_one_manager(struct vb_fabricd *f, struct fd_manager *m)
{
	vb_fabricd_never(f, &m->again);
	if (m->pid > 0) {
		kill(m->pid, SIGKILL);
		(void)waitpid(m->pid, NULL, 0);
	}
	if (m->watch.fd >= 0)
		close(m->watch.fd);
	remove_files(m);
	free(m);
}

void vb_fabricd_end_managers(struct vb_fabricd *f)
{
	while (f->managers) {
		struct fd_manager *m = f->managers;

		f->managers = m->next;
		end_one_manager(f, m);
	}
}

static int fill_manager(struct fd_manager *m, const struct vb_subnets *s,
			const char *self, const char *opensm, char *error)
{
	const struct vb_topo_node *n = vb_subnets_manager(s, m->subnet);
	int rc;

	if (!n)
		return vb_topo_fail(error, "no node can have a subnet manager");
	snprintf(m->self, PATH_MAX, "%s", self);
	snprintf(m->opensm, PATH_MAX, "%s", opensm);
	snprintf(m->place, sizeof(m->place), "ib:%s/%s", m->f->name, n->id);
	rc = make_files(m, s);
	if (!rc)
		rc = start_manager(m);
	return rc ? vb_topo_fail(error, "cannot start %.300s: %s", opensm,
				 strerror(-rc))
		  : 0;
}

/* Add the manager of @subnet behind *@last. */
static struct fd_manager *add_manager(struct vb_fabricd *f, unsigned subnet,
				      struct fd_manager **last)
{
	struct fd_manager *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->f = f;
	m->subnet = subnet;
	m->watch.fd = -1;
	m->watch.ready = manager_ended;
	vb_fabricd_later_init(&m->again, start_again);
	*last = m;
	return m;
}

static int start_managers(struct vb_fabricd *f, const struct vb_subnets *s,
			  const char *self, const char *opensm, char *error)
{
	struct fd_manager **last = &f->managers;

	if (vb_timers_reserve(&f->due, VB_FABRICD_LATERS + s->count))
		return vb_topo_fail(error, "no memory");
	for (unsigned subnet = 1; subnet <= s->count; subnet++) {
		struct fd_manager *m = add_manager(f, subnet, last);

		if (!m)
			return vb_topo_fail(error, "no memory");
		if (fill_manager(m, s, self, opensm, error))
			return -EINVAL;
		last = &m->next;
	}
	return s->count ? 0
			: vb_topo_fail(error,
				       "no node can have a subnet manager");
}

int vb_fabricd_manage(struct vb_fabricd *f, const char *self,
		      const char *opensm, char log[PATH_MAX],
		      char error[VB_TOPO_ERROR])
{
	struct vb_subnets s;
	int rc = vb_subnets_find(f->topo, &s, error);

	if (!rc)
		rc = start_managers(f, &s, self, opensm, error);
	vb_subnets_free(&s);
	if (rc) {
		vb_fabricd_end_managers(f);
		return -EINVAL;
	}
	snprintf(log, PATH_MAX, "%s", f->managers->log);
	return 0;
}
