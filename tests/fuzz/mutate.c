/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A driver without libFuzzer: it passes to a target each file of a corpus, then
 * some thousands of seeded mutations of them. Each input is in memory of its
 * exact size, so that a sanitizer detects a read of one byte too many.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/support/seeds.h"

#include <dirent.h>
#include <string.h>

#define MAX_FILES 512
#define MAX_BYTES 4096
#define ROUNDS	  8000

struct input {
	size_t len;
	uint8_t bytes[MAX_BYTES];
};

static struct input corpus[MAX_FILES];
static size_t files;

/* The generator xorshift, whose numbers are equal on every machine. */
static uint32_t next_random(void)
{
	static uint32_t x = 0x2545f491;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x;
}

static size_t below(size_t bound)
{
	return bound ? next_random() % bound : 0;
}

static void feed(const struct input *in)
{
	uint8_t *exact = malloc(in->len ? in->len : 1);

	if (!exact)
		abort();
	memcpy(exact, in->bytes, in->len);
	LLVMFuzzerTestOneInput(exact, in->len);
	free(exact);
}

static void read_file(const char *dir, const char *name)
{
	char path[1024];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "rb");
	if (!f)
		return;
	corpus[files].len = fread(corpus[files].bytes, 1, MAX_BYTES, f);
	files++;
	fclose(f);
}

static bool read_corpus(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	if (!dir)
		return false;
	while ((entry = readdir(dir)) && files < MAX_FILES)
		if (entry->d_name[0] != '.')
			read_file(path, entry->d_name);
	closedir(dir);
	return files > 0;
}

static void mutate_once(struct input *in)
{
	size_t at = below(in->len), run = below(in->len - at) % 16;

	switch (below(6)) {
	case 0: /* cut the input off at a random byte */
		in->len = at;
		break;
	case 1: /* append random bytes to the input */
		run = below(VB_MIN(64, MAX_BYTES - in->len));
		memset(in->bytes + in->len, (int)next_random(), run);
		in->len += run;
		break;
	case 2: /* splice in a piece of another input */
		memcpy(in->bytes + at, corpus[below(files)].bytes + at, run);
		break;
	case 3: /* set a byte to a boundary value */
		if (in->len)
			in->bytes[at] = "\x00\x01\x7f\x80\xff"[below(5)];
		break;
	default: /* flip a bit */
		if (in->len)
			in->bytes[at] ^= 1 << below(8);
	}
}

int main(int argc, char **argv)
{
	static struct input in;

	if (argc != 2 || !read_corpus(argv[1])) {
		fprintf(stderr, "usage: %s corpus-directory\n", argv[0]);
		return 2;
	}
	for (size_t i = 0; i < files; i++)
		feed(&corpus[i]);
	for (unsigned i = 0; i < ROUNDS / seeds_divisor(); i++) {
		in = corpus[below(files)];
		for (size_t n = 1 + below(4); n; n--)
			mutate_once(&in);
		feed(&in);
	}
	return 0;
}
