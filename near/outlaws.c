/* SPDX-License-Identifier: BSD-2-Clause */
#include "near/outlaws.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/birth.h"

static bool is_same_outlaw(const struct vb_outlaw *a, const struct vb_outlaw *b)
{
	return a->pid == b->pid && a->born == b->born;
}

/* Where /proc is not mounted, nothing shows that another process has got the
 * number: that process is refused, too. */
static bool outlaw_has_ended(const struct vb_outlaw *who)
{
	return (kill(who->pid, 0) < 0 && errno == ESRCH) ||
	       vb_birth_of(who->pid) != who->born;
}

static void forget_ended(struct vb_outlaws *all)
{
	for (size_t i = all->count; i-- > 0;)
		if (outlaw_has_ended(&all->list[i]))
			all->list[i] = all->list[--all->count];
}

static bool outlaws_grow(struct vb_outlaws *all)
{
	size_t room = all->room ? 2 * all->room : 4;
	struct vb_outlaw *list = realloc(all->list, room * sizeof(*list));

	if (!list)
		return false;
	all->list = list;
	all->room = room;
	return true;
}

void vb_outlaws_add(struct vb_outlaws *all, const struct vb_outlaw *who)
{
	forget_ended(all);
	if (vb_outlaws_have(all, who) ||
	    (all->count == all->room && !outlaws_grow(all)))
		return;
	all->list[all->count++] = *who;
}

bool vb_outlaws_have(const struct vb_outlaws *all, const struct vb_outlaw *who)
{
	for (size_t i = 0; i < all->count; i++)
		if (is_same_outlaw(&all->list[i], who))
			return true;
	return false;
}

void vb_outlaws_fini(struct vb_outlaws *all)
{
	free(all->list);
	*all = (struct vb_outlaws){ 0 };
}
