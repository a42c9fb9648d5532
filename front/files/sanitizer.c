/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells MemorySanitizer which memory __asprintf_chk() writes. The sanitizer
 * replaces asprintf(), but not __asprintf_chk(), which a library built with
 * _FORTIFY_SOURCE calls instead. The constructor of libnl-route, which every
 * libibverbs loads, makes a file's name in this way. Without this file the
 * sanitizer takes the name for uninitialized memory and ends the program. */
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
