/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of the command's subcommands, options and environment variables.
 * Parsing, help of every kind, and `verbena help --all`, from which the manual
 * page and the shells' completions are made, come from this table alone.
 */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "base/defs.h"

struct vb_cli_option {
	const char *name;  /* the long form, without its dashes */
	char key;	   /* what vb_cli_next_option() returns */
	bool has_letter;   /* -KEY is a short form */
	const char *value; /* NULL: no value; "[WORD]": it may have one */
	const char *help;
};

struct vb_cli_command {
	const char *name;      /* "run", or two words: "fabric show" */
	const char *arguments; /* what follows the options; "" for nothing */
	const char *summary;
	/* the options; NULL, or ends with a row without a name */
	const struct vb_cli_option *options;
	/* The first word that is no option ends the options. */
	bool word_ends;
	const char *more; /* paragraphs behind the options; NULL: none */
	/* NULL: a subcommand of two words, which the function of its first word
	 * runs */
	int (*main)(int argc, char **argv);
};
extern const struct vb_cli_command vb_cli_commands[];
extern const unsigned vb_cli_command_count;

/* The part of the system that sets an environment variable. */
enum vb_cli_setter {
	SETTER_USER,  /* the user, for programs or for this command */
	SETTER_RUN,   /* `verbena run`, for the libraries that it preloads */
	SETTER_TESTS, /* the project's tests */
};

struct vb_cli_variable {
	const char *name, *values, *help;
	enum vb_cli_setter setter;
};
extern const struct vb_cli_variable vb_cli_variables[];
extern const unsigned vb_cli_variable_count;

/* Gets the name of a variable, which has @len letters and no end of its own,
 * and a sentence about it. */
typedef void vb_cli_tell_variable(const char *name, size_t len,
				  const char *text);
/* Find mistyped variables in the environment of this process, and call @tell
 * once for each: the name differs in one or two letters from a name of
 * vb_cli_variables[], or the value is not one of those that the name's row
 * permits. Any thread. */
void vb_cli_check_variables(vb_cli_tell_variable *tell);

/* Returns the row of @name; NULL: there is none. */
const struct vb_cli_command *vb_cli_find_command(const char *name);

/*
 * Read the next option of the command @name, as getopt_long() does; its value
 * is in optarg. Returns its key; -1: there is no further option, and optind is
 * the index of the first word; '?': the command has no such option, or the
 * option lacks its value, and this function has said so on standard error.
 * --help and -h print the help and end the process.
 */
int vb_cli_next_option(const char *name, int argc, char **argv);

/* Print "verbena NAME: ..." and where to look, as one line on standard error.
 * Returns EXIT_USAGE. */
int vb_cli_refuse(const char *name, const char *format, ...) VB_PRINTF(2, 3);
/* Refuse the value @value of the option --@option, which @expected describes:
 * "a number of seconds". Returns EXIT_USAGE. */
int vb_cli_refuse_value(const char *name, const char *option, const char *value,
			const char *expected);

/* Print the help of one command; the list of all commands; and all that the
 * tables have, as tab-separated lines (docs/COMMAND.md). */
void vb_cli_print_help(const struct vb_cli_command *c);
void vb_cli_print_overview(void);
void vb_cli_print_tables(void);

#endif
