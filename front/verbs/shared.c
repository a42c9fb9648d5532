/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file behind a context's cmd_fd: the device and process of the context,
 * the handles of its protection domains, and the bytes of its device memory. A
 * process that receives the descriptor imports from it. Memory regions are not
 * in the file: their keys are looked up in the host's registry
 * (near/registry.h).
 *
 * Every process that has the descriptor can write to the file, so each value is
 * checked before it is used.
 */
#include "core/lock_order.h"
#include "front/verbs/front.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file_limit.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/rand.h"
#include "wire/ipc.h"

#define DOMAINS	 4096
#define MEMORIES 256

/* Device memory begins at byte MEMORY_AT and ends before MEMORY_ENDS. A range
 * is used only once in the file's life, which the large end allows: pages that
 * were never touched take no memory. */
#define MEMORY_AT   (1ull << 20)
#define MEMORY_ENDS (1ull << 40)

struct shared_memory {
	/* handle of the object; 0: the entry is free; UINT32_MAX: it is being
	 * filled in */
	_Atomic uint32_t handle;
	_Atomic uint64_t offset, length;
};

/* The contents of the file. Index 0 of the tables is not used, since 0 means
 * "none". */
struct vb_front_file {
	struct vb_front_file_head head;
	_Atomic uint64_t next_offset;
	_Atomic uint32_t domains[DOMAINS];
	struct shared_memory memories[MEMORIES];
};
_Static_assert(sizeof(struct vb_front_file) <= MEMORY_AT,
	       "device memory lies behind the tables");

static const char magic[8] = "verbena";

/*
 * Identifies the process that made a file. Process numbers are reused and
 * differ between namespaces, so a process chooses a random number; a child of
 * fork chooses its own.
 */

/* random number that identifies this process; 0: not chosen yet */
static _Atomic uint64_t self;

static void forget_self(void)
{
	atomic_store(&self, 0);
}
VB_FORGET_AT_FORK(forget_self)

static uint64_t who_we_are(void)
{
	uint64_t none = 0;

	if (atomic_load(&self) == 0)
		atomic_compare_exchange_strong(&self, &none,
					       (uint64_t)vb_rand32() << 32 |
						       vb_rand32() | 1);
	return atomic_load(&self);
}

bool vb_front_file_is_ours(const struct vb_front_context *c)
{
	return c->maker == who_we_are();
}

/* Give the file its final size and seal it: if another process could truncate
 * it, touching its mapping here would raise SIGBUS. */
static int make_large(int fd)
{
	if (ftruncate(fd, (off_t)MEMORY_ENDS))
		return -errno;
	return fcntl(fd, F_ADD_SEALS,
		     F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

static bool may_be_mapped(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_SHRINK &&
	       lseek(fd, 0, SEEK_END) == (off_t)MEMORY_ENDS;
}

int vb_front_file_make(const struct vb_device *d)
{
	struct vb_front_file_head head = { .guid = d->guid,
					   .maker = who_we_are(),
					   .ifindex = d->ifindex,
					   .kind = d->kind };
	int fd = vb_file_may_have(sizeof(head))
			 ? memfd_create("verbena",
					MFD_CLOEXEC | MFD_ALLOW_SEALING)
			 : -1;
	bool large = fd >= 0 && vb_file_may_have(MEMORY_ENDS);

	if (fd < 0) /* without a memfd no object can be imported */
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	memcpy(head.magic, magic, sizeof(head.magic));
	if (vb_file_write(fd, &head, sizeof(head), -1) != sizeof(head) ||
	    (large && make_large(fd))) {
		close(fd);
		return -EIO;
	}
	return fd;
}

int vb_front_file_read(int fd, struct vb_front_file_head *head)
{
	if (pread(fd, head, sizeof(*head), 0) != sizeof(*head) ||
	    memcmp(head->magic, magic, sizeof(magic)) != 0)
		return -EINVAL;
	return 0;
}

/* Store in the file how the importing process finds this one
 * (vb_engine_meet()). */
static void say_where(struct vb_front_file *f, const struct vb_adapter *a)
{
	uint64_t none = 0;

	f->head.slot = a->host_slot;
	f->head.adapter = a->number;
	atomic_compare_exchange_strong(&f->next_offset, &none, MEMORY_AT);
}

void vb_front_file_map(struct vb_front_context *c)
{
	int fd = c->v.context.cmd_fd;
	struct vb_front_file_head head;
	struct vb_front_file *f;

	/* A file without a head is /dev/null, which this process itself has
	 * opened: no process can import from it. */
	c->maker = vb_front_file_read(fd, &head) ? who_we_are() : head.maker;
	if (!may_be_mapped(fd))
		return;
	f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (f == MAP_FAILED)
		return;
	if (vb_front_file_is_ours(c))
		say_where(f, c->adapter);
	c->file = f;
}

void vb_front_file_unmap(struct vb_front_file *f)
{
	if (f)
		munmap(f, sizeof(*f));
}

/* Functions for protection domains. */

/* Guards free_domain of all contexts, the index below which no entry of the
 * file is free. */
static struct vb_mutex places = VB_MUTEX_INITIALIZER(RANK_PLACES);

static void forget_places(void)
{
	vb_mutex_init(&places, RANK_PLACES);
}
VB_FORGET_AT_FORK(forget_places)

static unsigned take_place(struct vb_front_context *c, uint32_t handle)
	VB_REQUIRES(places)
{
	unsigned i = VB_MAX(c->free_domain, 1u);

	while (i < DOMAINS && atomic_load(&c->file->domains[i]))
		i++;
	c->free_domain = VB_MIN(i + 1, (unsigned)DOMAINS);
	if (i == DOMAINS)
		/* The file's table is full, so no process can import this
		 * domain. */
		return 0;
	atomic_store(&c->file->domains[i], handle);
	return i;
}

unsigned vb_front_file_add_pd(struct vb_front_context *c, uint32_t handle)
{
	unsigned place;

	if (!c->file || !vb_front_file_is_ours(c))
		return 0;
	vb_mutex_lock(&places);
	place = take_place(c, handle);
	vb_mutex_unlock(&places);
	return place;
}

void vb_front_file_drop_pd(struct vb_front_context *c, unsigned place)
{
	if (!place)
		return;
	vb_mutex_lock(&places);
	atomic_store(&c->file->domains[place], 0);
	c->free_domain = VB_MIN(c->free_domain, place);
	vb_mutex_unlock(&places);
}

int vb_front_file_find_pd(struct vb_front_context *c, uint32_t handle,
			  struct vb_pd_origin *from)
{
	struct vb_front_file *f = c->file;

	if (!f || handle == 0)
		return -ENOENT;
	*from = (struct vb_pd_origin){ true, f->head.slot, f->head.adapter };
	for (unsigned i = 1; i < DOMAINS; i++)
		if (atomic_load(&f->domains[i]) == handle)
			return vb_engine_meet(from->slot);
	return -ENOENT;
}

/* Functions for device memory. */

static uint64_t whole_pages(uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) & ~(page - 1);
}

static struct shared_memory *front_take_memory(struct vb_front_file *f,
					       unsigned *place)
{
	for (*place = 1; *place < MEMORIES; ++*place) {
		struct shared_memory *m = &f->memories[*place];
		uint32_t none = 0;

		if (atomic_compare_exchange_strong(&m->handle, &none,
						   UINT32_MAX))
			return m;
	}
	return NULL;
}

static int map_range(int fd, uint64_t offset, uint64_t bytes, void *at)
{
	int fixed = at ? MAP_FIXED : 0;

	if (offset < MEMORY_AT || offset % (uint64_t)sysconf(_SC_PAGESIZE) ||
	    bytes > MEMORY_ENDS || offset > MEMORY_ENDS - bytes)
		return -ENOMEM;
	at = mmap(at, bytes, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_NORESERVE | fixed, fd, (off_t)offset);
	return at == MAP_FAILED ? -errno : 0;
}

unsigned vb_front_file_add_dm(struct vb_front_context *c, uint32_t handle,
			      void *at, uint64_t length)
{
	struct vb_front_file *f = c->file;
	uint64_t bytes = whole_pages(length), offset;
	struct shared_memory *m;
	unsigned place;

	if (!f || !vb_front_file_is_ours(c))
		return 0;
	m = front_take_memory(f, &place);
	if (!m)
		return 0;
	offset = atomic_fetch_add(&f->next_offset, bytes);
	if (map_range(c->v.context.cmd_fd, offset, bytes, at)) {
		atomic_store(&m->handle, 0);
		return 0;
	}
	atomic_store(&m->offset, offset);
	atomic_store(&m->length, length);
	atomic_store(&m->handle, handle);
	return place;
}

void vb_front_file_drop_dm(struct vb_front_context *c, unsigned place)
{
	struct shared_memory *m = &c->file->memories[place];

	/* Free the pages at once, even if other processes still map them. */
	(void)fallocate(c->v.context.cmd_fd,
			FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)atomic_load(&m->offset),
			(off_t)whole_pages(atomic_load(&m->length)));
	atomic_store(&m->handle, 0);
}

static const struct shared_memory *
front_shared_find_memory(const struct vb_front_file *f, uint32_t handle)
{
	for (unsigned i = 1; i < MEMORIES; i++)
		if (atomic_load(&f->memories[i].handle) == handle)
			return &f->memories[i];
	return NULL;
}

static int map_anywhere(int fd, uint64_t offset, uint64_t bytes, uint8_t **at)
{
	void *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	int rc;

	if (p == MAP_FAILED)
		return -errno;
	rc = map_range(fd, offset, bytes, p);
	if (rc)
		munmap(p, bytes);
	*at = p;
	return rc;
}

int vb_front_file_find_dm(struct vb_front_context *c, uint32_t handle,
			  uint8_t **at, uint64_t *length)
{
	const struct shared_memory *m;
	uint64_t offset;

	if (!c->file || handle == 0 || handle == UINT32_MAX)
		return -ENOENT;
	m = front_shared_find_memory(c->file, handle);
	if (!m)
		return -ENOENT;
	*length = atomic_load(&m->length);
	offset = atomic_load(&m->offset);
	/* If the handle has changed, the owner has freed the memory meanwhile,
	 * and length and offset may belong to its next memory. */
	if (atomic_load(&m->handle) != handle)
		return -ENOENT;
	if (*length == 0 || *length > VB_FRONT_DM_BYTES)
		return -ENOENT;
	return map_anywhere(c->v.context.cmd_fd, offset, whole_pages(*length),
			    at);
}
