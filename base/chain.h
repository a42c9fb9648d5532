/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A doubly linked list. The link is a member of the listed object, so an object
 * leaves the list in one step, however long the list is. The head is a pointer,
 * NULL for an empty list. The caller holds the lock that guards the list.
 */
#ifndef BASE_CHAIN_H
#define BASE_CHAIN_H

#include "base/defs.h"

struct vb_chain {
	struct vb_chain *next;
	/* address of the pointer to this link: a list's head, or a link's
	 * @next */
	struct vb_chain **at;
};

/* Insert @l as the first element of the list. */
static inline void vb_chain_add(struct vb_chain **head, struct vb_chain *l)
{
	l->next = *head;
	l->at = head;
	if (l->next)
		l->next->at = &l->next;
	*head = l;
}

static inline void vb_chain_del(struct vb_chain *l)
{
	*l->at = l->next;
	if (l->next)
		l->next->at = l->at;
	l->next = NULL;
	l->at = NULL;
}

#endif
