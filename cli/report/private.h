/* cli/report/private.h - what the files of a report share. */
#pragma once

#include "cli/diagnose/diagnose.h"
#include "plots/plot.h"
#include "trace/compare/compare.h"

/* The runs of one plan, the predicted one first, and what there is to say of them. */
typedef struct {
    guint number; /* of the part, from 1 */
    PlotPanel panels[PLOT_MAX_PANELS];
    guint n_panels;
    TraceComparison *comparison; /* of both runs; NULL: there is one */
    CliDiagnosis *diagnosis;     /* of the first; NULL: refusal says why there is none */
    GError *refusal;
} ReportPart;

/* ReportPart of each plan, in the order of the traces; two of one plan and side are an error.
 * cluster: to diagnose on; NULL: each trace's own. */
GArray *report_parts(const GPtrArray *traces, const char *cluster, GError **error);

void report_append_text(GString *page, const char *text); /* with markup escaped */
void report_append_row(GString *page, const char *cell, ...) G_GNUC_NULL_TERMINATED;

/* Sections of a part. */
bool report_append_pictures(GString *page, const ReportPart *part, GError **error);
void report_append_peaks(GString *page, const ReportPart *part);
void report_append_comparison(GString *page, const TraceComparison *comparison);
void report_append_units(GString *page, const ReportPart *part);
void report_append_settings(GString *page, const ReportPart *part);
void report_append_repeat(GString *page, const ReportPart *part);
