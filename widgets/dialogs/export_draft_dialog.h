// SPDX-License-Identifier: GPL-3.0-or-later
// Asks how to export a draft, and shows what each layout keeps and loses of it before anything is
// written.
#pragma once

#include <functional>

#include <QDialog>
#include <QTimer>

#include "widgets/dialogs/export_form.h"
#include "widgets/jobs/latest_task.h"

class QCheckBox;
class QComboBox;
class QDoubleSpinBox;
class QLabel;
class QPushButton;
class QTextBrowser;

namespace mla::ui
{

class FormSection;
class PathField;

/// Every layout's description for the draft in a folder.
using DraftDescriber =
    std::function<Result<std::vector<LayoutDescription>>(const std::filesystem::path&)>;

/// Not modal to the program: open() it. Drafts are read off the GUI thread as they are typed.
class ExportDraftDialog : public QDialog
{
    Q_OBJECT
public:
    explicit ExportDraftDialog(DraftDescriber describe, QWidget* parent = nullptr);

    [[nodiscard]] ExportForm form() const;
    void setDraft(const QString& path);
    void setStudy(const QString& path); ///< offers to record the export there
    [[nodiscard]] const std::vector<Issue>& issues() const { return m_issues; }

signals:
    void planned(const mla::ExportRequest& request); ///< the user pressed Export

private:
    FormSection* buildForm();
    QWidget* buildFooter();
    void read();
    void offerLayouts();
    void showLayout();
    void proposeOutput();
    void check();

    DraftDescriber m_describe;
    DraftState m_state;
    LatestTask m_task;
    QTimer m_delay;
    FormSection* m_section = nullptr;
    PathField *m_draft = nullptr, *m_output = nullptr;
    QComboBox *m_layout = nullptr, *m_dtype = nullptr;
    QDoubleSpinBox* m_shard = nullptr;
    QCheckBox *m_verify = nullptr, *m_record = nullptr, *m_overwrite = nullptr;
    QTextBrowser* m_description = nullptr;
    QLabel* m_reason = nullptr;
    QPushButton* m_start = nullptr;
    QString m_study;
    std::vector<Issue> m_issues;
    bool m_outputChosen = false, m_ready = false;
};

} // namespace mla::ui
