// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/dialogs/form_section.h"

#include <QFormLayout>
#include <QLabel>
#include <QVBoxLayout>

#include "widgets/common/palette.h"

namespace mla::ui
{

FormSection::FormSection(const QString& title, QWidget* parent)
    : QGroupBox(title, parent), m_form(new QFormLayout(this))
{
    m_form->setFieldGrowthPolicy(QFormLayout::ExpandingFieldsGrow);
    m_form->setVerticalSpacing(4);
}

QLabel* FormSection::makeMessage(Field field)
{
    auto* message = new QLabel(this);
    message->setWordWrap(true);
    message->setTextFormat(Qt::PlainText);
    QFont small = message->font();
    small.setPointSizeF(small.pointSizeF() * 0.92);
    message->setFont(small);
    message->hide();
    m_messages[field] = message;
    return message;
}

void FormSection::addField(Field field, const QString& label, QWidget* widget)
{
    auto* cell = new QWidget(this);
    auto* column = new QVBoxLayout(cell);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(1);
    column->addWidget(widget);
    column->addWidget(makeMessage(field));
    auto* title = new QLabel(label, this);
    title->setBuddy(widget);
    m_form->addRow(title, cell);
}

void FormSection::addRow(const QString& label, QWidget* widget)
{
    auto* title = new QLabel(label, this);
    title->setBuddy(widget);
    m_form->addRow(title, widget);
}

void FormSection::addNote(QLabel* note)
{
    m_form->addRow(note);
}

void FormSection::addMessageLine(Field field)
{
    m_form->addRow(makeMessage(field));
}

void FormSection::showIssues(const std::vector<Issue>& issues)
{
    for (const auto& [field, message] : m_messages) {
        QStringList lines;
        bool blocking = false;
        for (const Issue& issue : issues) {
            if (issue.field != field)
                continue;
            lines << issue.text;
            blocking |= issue.blocking;
        }
        message->setText(lines.join(QLatin1Char('\n')));
        message->setVisible(!lines.isEmpty());
        QPalette colours = palette();
        const bool dark = isDark(colours);
        colours.setColor(QPalette::WindowText,
                         blocking ? deltaColor(-100, dark) : plotThemeFor(colours).mutedText);
        message->setPalette(colours);
    }
}

} // namespace mla::ui
