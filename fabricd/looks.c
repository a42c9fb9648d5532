/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether the fabric's process awaits the answer of a program, or sleeps. */
#include "fabricd/looks.h"

void vb_looks_gave(struct vb_looks *l, vb_time now)
{
	if (now < l->paused_until)
		return;
	l->waits = true;
	l->until = now + VB_LOOKS_ANSWER;
}

void vb_looks_answered(struct vb_looks *l)
{
	l->waits = false;
	l->pause = 0;
}

bool vb_looks_on(struct vb_looks *l, bool apart, vb_time now)
{
	if (!l->waits)
		return false;
	if (apart && now < l->until)
		return true;
	l->waits = false;
	if (!apart)
		return false;
	l->pause = VB_MIN(VB_MAX(2 * l->pause, VB_LOOKS_LEAST), VB_LOOKS_MOST);
	l->paused_until = now + l->pause;
	return false;
}
