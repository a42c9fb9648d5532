#include "cli/cli.h"
int vb_cli_doctor(int argc, char **argv)
{
	return 0;
}
