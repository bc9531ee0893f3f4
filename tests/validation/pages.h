/* tests/validation/pages.h - what a page says that a command prints. */
#pragma once

/* Where `page` has the line "    $ COMMAND", what is indented below it is printed, from its first
 * line on all of it but where a line of three dots says that lines are left out: as
 * tests/cli/test-readme.py has it. Fails where it is not, and where the page has no such line. */
void validation_page_says(const char *page, const char *command, const char *printed);
