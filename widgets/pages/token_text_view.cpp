// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/token_text_view.h"

#include <algorithm>

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QSpinBox>
#include <QVBoxLayout>

#include "widgets/common/empty_state.h"
#include "widgets/common/plain_text.h"
#include "widgets/common/table_export.h"
#include "widgets/pages/token_strip.h"

namespace mla::ui
{

TokenTextView::TokenTextView(QWidget* parent)
    : QWidget(parent), m_source(new QComboBox(this)), m_prompt(new QSpinBox(this)),
      m_strip(new TokenStrip(this)), m_details(new QLabel(this))
{
    m_state = new EmptyState(buildContent(), this);
    m_state->setText(tr("No text to look at"),
                     tr("Greedy replays keep their texts: measure acceptance with the native "
                        "engine, method replay. Studies of older versions hold counts only."));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_state);
    connect(m_source, &QComboBox::currentIndexChanged, this, &TokenTextView::chooseSource);
    connect(m_prompt, &QSpinBox::valueChanged, this, &TokenTextView::showPrompt);
    connect(m_strip, &TokenStrip::currentChanged, this,
            [this](int token) { m_details->setText(m_strip->describe(token)); });
}

QWidget* TokenTextView::buildContent()
{
    m_source->setAccessibleName(tr("Text"));
    m_source->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    m_prompt->setAccessibleName(tr("Prompt"));
    m_prompt->setPrefix(tr("Prompt "));
    m_prompt->setMinimum(1);
    m_details->setTextFormat(Qt::RichText);
    m_details->setWordWrap(true);
    m_details->setAccessibleName(tr("Choices at the current token"));
    m_details->setTextInteractionFlags(Qt::TextSelectableByMouse);
    auto* legend = new QLabel(tr("■ accepted   ☒ rejected, the target's own token   ⊞ bonus after "
                                 "a whole draft   – not drafted"),
                              this);
    auto* exports = new TableExportButton([this] { return shownTable(); }, this);
    connect(exports, &TableExportButton::exportFailed, this, &TokenTextView::exportFailed);
    auto* line = new QHBoxLayout;
    line->addWidget(m_source, 1);
    line->addWidget(m_prompt);
    line->addWidget(exports);
    auto* content = new QWidget(this);
    auto* layout = new QVBoxLayout(content);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(line);
    layout->addWidget(m_strip, 1);
    layout->addWidget(legend);
    layout->addWidget(m_details);
    return content;
}

void TokenTextView::setStudy(const StudyData& study)
{
    const int shown = m_source->currentIndex();
    const TokenSource before = shown >= 0 && shown < static_cast<int>(m_sources.size())
                                   ? m_sources[static_cast<std::size_t>(shown)]
                                   : TokenSource();
    m_study = &study;
    m_sources = tokenSources(study);
    m_state->setEmpty(m_sources.empty());
    {
        const QSignalBlocker silent(m_source);
        m_source->clear();
        for (const TokenSource& source : m_sources)
            m_source->addItem(tr("%1, k = %2, by %3")
                                  .arg(text(source.task))
                                  .arg(source.k)
                                  .arg(text(source.target)));
        const auto same = std::ranges::find(m_sources, before);
        m_source->setCurrentIndex(m_sources.empty() ? -1
                                  : same == m_sources.end()
                                      ? 0
                                      : static_cast<int>(same - m_sources.begin()));
    }
    chooseSource();
}

void TokenTextView::chooseSource()
{
    const int index = m_source->currentIndex();
    if (index >= 0) {
        const QSignalBlocker silent(m_prompt);
        const int prompts = m_sources[static_cast<std::size_t>(index)].prompts;
        m_prompt->setMaximum(prompts);
        m_prompt->setSuffix(tr(" of %1").arg(prompts));
    }
    showPrompt();
}

void TokenTextView::showPrompt()
{
    const int index = m_source->currentIndex();
    m_strip->setTokens(index < 0 ? TokenText()
                                 : tokenText(*m_study, m_sources[static_cast<std::size_t>(index)],
                                             m_prompt->value() - 1));
}

Table TokenTextView::shownTable() const
{
    const int index = m_source->currentIndex();
    if (index < 0)
        return {};
    return tokenTable(m_strip->tokens(), m_sources[static_cast<std::size_t>(index)],
                      m_prompt->value() - 1);
}

} // namespace mla::ui
