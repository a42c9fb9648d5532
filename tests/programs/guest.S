/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a guest of QEMU boots: a sector that fills the memory from 1 to 33 MiB,
 * says so by an R on the serial port, and then changes a word in each page of
 * four MiB of it for ever.
 */
	.set	FIRST, 0x100000
	.set	END, 0x2100000
	.set	BUSY, 0x400000
	.set	BUSY_END, 0x800000

	.code16
	.globl	_start
_start:
	cli
	xorw	%ax, %ax
	movw	%ax, %ds
	inb	$0x92, %al
	orb	$2, %al			/* address line 20 */
	outb	%al, $0x92
	lgdt	table
	movl	%cr0, %eax
	orb	$1, %al
	movl	%eax, %cr0
	ljmp	$8, $flat

	.code32
flat:
	movw	$16, %ax
	movw	%ax, %ds
	movl	$FIRST, %edi
fill:
	imull	$0x9e3779b1, %edi, %eax
	movl	%eax, (%edi)
	addl	$4, %edi
	cmpl	$END, %edi
	jb	fill
	movw	$0x3f8, %dx
	movb	$'R', %al
	outb	%al, %dx
again:
	incl	%ebx
	movl	$BUSY, %edi
page:
	addl	%ebx, (%edi)
	addl	$4096, %edi
	cmpl	$BUSY_END, %edi
	jb	page
	movl	$20000, %ecx
rest:
	loop	rest
	jmp	again

	.balign	8
descriptors:
	.quad	0
	.quad	0x00cf9a000000ffff	/* code, 4 GiB */
	.quad	0x00cf92000000ffff	/* data, 4 GiB */
table:
	.word	. - descriptors - 1
	.long	descriptors

	.org	510
	.word	0xaa55
