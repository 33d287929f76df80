// SPDX-License-Identifier: GPL-3.0-or-later
// A titled group of form rows, each with room for one message under its field.
#pragma once

#include <map>

#include <QGroupBox>

#include "widgets/dialogs/run_form.h"

class QFormLayout;
class QLabel;

namespace mla::ui
{

class FormSection : public QGroupBox
{
    Q_OBJECT
public:
    explicit FormSection(const QString& title, QWidget* parent = nullptr);

    /// `label` may hold a mnemonic; messages of `field` show under `widget`.
    void addField(Field field, const QString& label, QWidget* widget);
    void addRow(const QString& label, QWidget* widget);
    void addNote(QLabel* note); ///< a line across the section
    /// A place for messages of `field` without a widget of its own.
    void addMessageLine(Field field);
    /// Shows the messages that belong to this section's fields.
    void showIssues(const std::vector<Issue>& issues);

private:
    QLabel* makeMessage(Field field);
    QFormLayout* m_form;
    std::map<Field, QLabel*> m_messages;
};

} // namespace mla::ui
