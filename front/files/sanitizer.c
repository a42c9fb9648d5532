/* SPDX-License-Identifier: BSD-2-Clause */
/* What MemorySanitizer does not know. It replaces asprintf(), but not the
 * function that a library built with _FORTIFY_SOURCE calls in its place. So it
 * takes a file's name that libnl-route, which every libibverbs loads, makes in
 * its constructor for memory that nobody has written, and ends the program. */
#include "front/files/files.h"

#include <stdarg.h>

#include "base/tools.h"

int __vasprintf_chk(char **out, int flag, const char *format, va_list args);
int __asprintf_chk(char **out, int flag, const char *format, ...);

EXPORTED int __asprintf_chk(char **out, int flag, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = __vasprintf_chk(out, flag, format, args);
	va_end(args);
	if (len >= 0)
		vb_tools_wrote(*out, (size_t)len + 1);
	return len;
}
