/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The routines of base/guard.h, whose faults are caught, and the table that
 * tells guard_copy.c where each continues after a fault. No routine moves the
 * stack pointer, so a fixup only has to set the result and return.
 *
 * A copy aligns its destination first, stores only naturally aligned pieces
 * in ascending order, and ends with the largest aligned pieces that are left:
 * every aligned word of up to 8 bytes appears at once, and the last one appears
 * last.
 */
#if defined(__x86_64__) && !defined(VB_GUARD_PORTABLE)

	.macro	door name
	.globl	\name
	.hidden	\name
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
	.endm

	.macro	door_end name
	.cfi_endproc
	.size	\name, . - \name
	.endm

	/* Move \bytes bytes through \reg. */
	.macro	piece bytes, reg
	mov	(%rsi), \reg
	mov	\reg, (%rdi)
	add	$\bytes, %rsi
	add	$\bytes, %rdi
	sub	$\bytes, %rdx
	.endm

	.set	AHEAD, 1024

	.text
/*
 * size_t vb_guard_copy(void *dst (rdi), const void *src (rsi),
 *			size_t len (rdx))
 * rdx counts the bytes that remain. The processor keeps stores in order.
 */
	door	vb_guard_copy
.Lcopy_begin:
	cmp	$64, %rdx
	jae	.Lalign_1
	/* The most common small lengths: one piece, aligned or not. */
	cmp	$8, %rdx
	je	.Lone_8
	cmp	$4, %rdx
	je	.Lone_4
	cmp	$2, %rdx
	je	.Lone_2

.Lalign_1:
	test	$1, %dil
	jz	.Lalign_2
	cmp	$1, %rdx
	jb	.Ldone
	piece	1, %al
.Lalign_2:
	test	$2, %dil
	jz	.Lalign_4
	cmp	$2, %rdx
	jb	.Ltail
	piece	2, %ax
.Lalign_4:
	test	$4, %dil
	jz	.Lalign_8
	cmp	$4, %rdx
	jb	.Ltail
	piece	4, %eax
.Lalign_8:
	test	$8, %dil
	jz	.Lbulk
	cmp	$8, %rdx
	jb	.Ltail
	piece	8, %rax

.Lbulk:
	cmp	$64, %rdx
	jb	.Lwords
	/* Long copies are rarely in cache: prefetch. Reads are prefetched
	 * beyond the end, where the next packet's data lies most often; writes
	 * are not, since other threads may be writing to those lines. */
	cmp	$AHEAD, %rdx
	jb	.Lbulk_loop
	.p2align 4
.Lfar_loop:
	prefetcht0 2*AHEAD(%rsi)
	prefetchw AHEAD-64(%rdi)
	movups	(%rsi), %xmm0
	movups	16(%rsi), %xmm1
	movups	32(%rsi), %xmm2
	movups	48(%rsi), %xmm3
	movaps	%xmm0, (%rdi)
	movaps	%xmm1, 16(%rdi)
	movaps	%xmm2, 32(%rdi)
	movaps	%xmm3, 48(%rdi)
	add	$64, %rsi
	add	$64, %rdi
	sub	$64, %rdx
	cmp	$AHEAD, %rdx
	jae	.Lfar_loop
	.p2align 4
.Lbulk_loop:
	movups	(%rsi), %xmm0
	movups	16(%rsi), %xmm1
	movups	32(%rsi), %xmm2
	movups	48(%rsi), %xmm3
	movaps	%xmm0, (%rdi)
	movaps	%xmm1, 16(%rdi)
	movaps	%xmm2, 32(%rdi)
	movaps	%xmm3, 48(%rdi)
	add	$64, %rsi
	add	$64, %rdi
	sub	$64, %rdx
	cmp	$64, %rdx
	jae	.Lbulk_loop

.Lwords:
	cmp	$8, %rdx
	jb	.Ltail
	piece	8, %rax
	jmp	.Lwords

.Ltail:
	test	$4, %dl
	jz	.Ltail_2
	piece	4, %eax
.Ltail_2:
	test	$2, %dl
	jz	.Ltail_1
	piece	2, %ax
.Ltail_1:
	test	$1, %dl
	jz	.Ldone
	piece	1, %al
.Ldone:
	xor	%eax, %eax
	ret

.Lone_8:
	mov	(%rsi), %rax
	mov	%rax, (%rdi)
	xor	%eax, %eax
	ret
.Lone_4:
	mov	(%rsi), %eax
	mov	%eax, (%rdi)
	xor	%eax, %eax
	ret
.Lone_2:
	mov	(%rsi), %ax
	mov	%ax, (%rdi)
	xor	%eax, %eax
	ret
.Lcopy_end:
.Lcopy_fixup:
	mov	%rdx, %rax
	ret
	door_end vb_guard_copy

/*
 * size_t vb_guard_copy_in(void *dst (rdi), const void *src (rsi),
 *			 size_t len (rdx))
 * Copies of 32 to 128 bytes are done by overlapping pieces; shorter and
 * longer ones by vb_guard_copy().
 */
	door	vb_guard_copy_in
	cmp	$32, %rdx
	jb	vb_guard_copy
	cmp	$128, %rdx
	ja	vb_guard_copy
.Lcopy_in_begin:
	movups	(%rsi), %xmm0
	movups	16(%rsi), %xmm1
	movups	-32(%rsi, %rdx), %xmm2
	movups	-16(%rsi, %rdx), %xmm3
	cmp	$64, %rdx
	jbe	.Lcopy_in_ends
	movups	32(%rsi), %xmm4
	movups	48(%rsi), %xmm5
	movups	-64(%rsi, %rdx), %xmm6
	movups	-48(%rsi, %rdx), %xmm7
	movups	%xmm4, 32(%rdi)
	movups	%xmm5, 48(%rdi)
	movups	%xmm6, -64(%rdi, %rdx)
	movups	%xmm7, -48(%rdi, %rdx)
.Lcopy_in_ends:
	movups	%xmm0, (%rdi)
	movups	%xmm1, 16(%rdi)
	movups	%xmm2, -32(%rdi, %rdx)
	movups	%xmm3, -16(%rdi, %rdx)
	xor	%eax, %eax
	ret
.Lcopy_in_end:
.Lcopy_in_fixup:
	mov	%rdx, %rax
	ret
	door_end vb_guard_copy_in

/*
 * int vb_guard_cas64(uint64_t *at (rdi), uint64_t expect (rsi),
 *		      uint64_t swap (rdx), uint64_t *old (rcx))
 */
	door	vb_guard_cas64
	mov	%rsi, %rax
.Lcas_begin:
	lock cmpxchg %rdx, (%rdi)
.Lcas_end:
	mov	%rax, (%rcx)
	xor	%eax, %eax
	ret
	door_end vb_guard_cas64

/*
 * int vb_guard_add64(uint64_t *at (rdi), uint64_t add (rsi),
 *		      uint64_t *old (rdx))
 */
	door	vb_guard_add64
.Ladd_begin:
	lock xadd %rsi, (%rdi)
.Ladd_end:
	mov	%rsi, (%rdx)
	xor	%eax, %eax
	ret
.Latomic_fixup:
	mov	$-14, %eax /* -EFAULT */
	ret
	door_end vb_guard_add64

#define WORD .quad

#elif defined(__aarch64__) && !defined(VB_GUARD_PORTABLE)

	.macro	door name
	.globl	\name
	.hidden	\name
	.type	\name, %function
	.p2align 4
\name:
	.cfi_startproc
	.endm

	.macro	door_end name
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.text
/*
 * size_t vb_guard_copy(void *dst (x0), const void *src (x1), size_t len (x2))
 * x2 counts the bytes that remain. The processor may reorder stores, so a
 * barrier stands before each of the last words and pieces. The first barrier
 * is for the stores of earlier copies: a message may take several.
 */
	door	vb_guard_copy
.Lcopy_begin:
	dmb	ishst
	cmp	x2, #8
	b.eq	.Lone_8
	cmp	x2, #4
	b.eq	.Lone_4
	cmp	x2, #2
	b.eq	.Lone_2

.Lalign_1:
	tbz	x0, #0, .Lalign_2
	cbz	x2, .Ldone
	ldrb	w3, [x1], #1
	strb	w3, [x0], #1
	sub	x2, x2, #1
.Lalign_2:
	tbz	x0, #1, .Lalign_4
	cmp	x2, #2
	b.lo	.Ltail
	ldrh	w3, [x1], #2
	strh	w3, [x0], #2
	sub	x2, x2, #2
.Lalign_4:
	tbz	x0, #2, .Lbulk
	cmp	x2, #4
	b.lo	.Ltail
	ldr	w3, [x1], #4
	str	w3, [x0], #4
	sub	x2, x2, #4

.Lbulk:
	cmp	x2, #64
	b.ls	.Lwords
	ldp	x4, x5, [x1]
	ldp	x6, x7, [x1, #16]
	ldp	x8, x9, [x1, #32]
	ldp	x10, x11, [x1, #48]
	stp	x4, x5, [x0]
	stp	x6, x7, [x0, #16]
	stp	x8, x9, [x0, #32]
	stp	x10, x11, [x0, #48]
	add	x1, x1, #64
	add	x0, x0, #64
	sub	x2, x2, #64
	b	.Lbulk

	/* At most 64 bytes are left: store them one word after the other. */
.Lwords:
	cmp	x2, #8
	b.lo	.Ltail
	ldr	x3, [x1], #8
	dmb	ishst
	str	x3, [x0], #8
	sub	x2, x2, #8
	b	.Lwords

.Ltail:
	tbz	x2, #2, .Ltail_2
	ldr	w3, [x1], #4
	dmb	ishst
	str	w3, [x0], #4
	sub	x2, x2, #4
.Ltail_2:
	tbz	x2, #1, .Ltail_1
	ldrh	w3, [x1], #2
	dmb	ishst
	strh	w3, [x0], #2
	sub	x2, x2, #2
.Ltail_1:
	tbz	x2, #0, .Ldone
	ldrb	w3, [x1]
	dmb	ishst
	strb	w3, [x0]
.Ldone:
	mov	x0, #0
	ret

.Lone_8:
	ldr	x3, [x1]
	str	x3, [x0]
	mov	x0, #0
	ret
.Lone_4:
	ldr	w3, [x1]
	str	w3, [x0]
	mov	x0, #0
	ret
.Lone_2:
	ldrh	w3, [x1]
	strh	w3, [x0]
	mov	x0, #0
	ret
.Lcopy_end:
.Lcopy_fixup:
	mov	x0, x2
	ret
	door_end vb_guard_copy

/* vb_guard_copy_in: on this processor another order gains nothing. */
	door	vb_guard_copy_in
	b	vb_guard_copy
.Lcopy_in_begin:
.Lcopy_in_end:
.Lcopy_in_fixup:
	door_end vb_guard_copy_in

/* vb_guard_cas64: at x0, expect x1, swap x2, old x3 */
	door	vb_guard_cas64
.Lcas_begin:
	ldaxr	x4, [x0]
	cmp	x4, x1
	b.ne	1f
	stlxr	w5, x2, [x0]
	cbnz	w5, .Lcas_begin
.Lcas_end:
1:	dmb	ish
	str	x4, [x3]
	mov	w0, #0
	ret
	door_end vb_guard_cas64

/* vb_guard_add64: at x0, add x1, old x2 */
	door	vb_guard_add64
.Ladd_begin:
	ldaxr	x4, [x0]
	add	x5, x4, x1
	stlxr	w6, x5, [x0]
	cbnz	w6, .Ladd_begin
.Ladd_end:
	dmb	ish
	str	x4, [x2]
	mov	w0, #0
	ret
.Latomic_fixup:
	mov	w0, #-14 /* -EFAULT */
	ret
	door_end vb_guard_add64

#define WORD .xword

#endif

#ifdef WORD
	.section .data.rel.ro, "aw"
	.p2align 3
	.globl	vb_guard_ranges
	.hidden	vb_guard_ranges
	.type	vb_guard_ranges, %object
vb_guard_ranges:
	WORD	.Lcopy_begin, .Lcopy_end, .Lcopy_fixup
	WORD	.Lcopy_in_begin, .Lcopy_in_end, .Lcopy_in_fixup
	WORD	.Lcas_begin, .Lcas_end, .Latomic_fixup
	WORD	.Ladd_begin, .Ladd_end, .Latomic_fixup
	.size	vb_guard_ranges, . - vb_guard_ranges
#endif

	.section .note.GNU-stack, "", %progbits
