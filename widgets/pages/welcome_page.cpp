// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/welcome_page.h"

#include <QAction>
#include <QCommandLinkButton>
#include <QDir>
#include <QFileInfo>
#include <QLabel>
#include <QVBoxLayout>

#include "widgets/common/theme.h"

namespace mla::ui
{

namespace
{

constexpr int columnWidth = 620;
constexpr int iconSize = 64;
constexpr int mostRecent = 5;

QLabel* label(const QString& text, double scale, bool bold, QWidget* parent)
{
    auto* label = new QLabel(text, parent);
    QFont font = label->font();
    font.setPointSizeF(font.pointSizeF() * scale);
    font.setBold(bold);
    label->setFont(font);
    label->setWordWrap(true);
    return label;
}

/// A folder as a user writes it.
QString shortFolder(const QString& path)
{
    const QString folder = QFileInfo(path).absolutePath(), home = QDir::homePath();
    if (folder == home || folder.startsWith(home + QLatin1Char('/')))
        return QLatin1Char('~') + folder.mid(home.size());
    return QDir::toNativeSeparators(folder);
}

} // namespace

WelcomePage::WelcomePage(QWidget* parent)
    : QScrollArea(parent), m_entries(new QVBoxLayout), m_recent(new QVBoxLayout)
{
    setAccessibleName(tr("Welcome"));
    setFrameShape(QFrame::NoFrame);
    setWidgetResizable(true);
    auto* page = new QWidget(this);
    auto* column = new QWidget(page);
    column->setMaximumWidth(columnWidth);
    auto* icon = new QLabel(column);
    icon->setPixmap(applicationIcon().pixmap(iconSize));
    auto* titles = new QVBoxLayout;
    titles->addWidget(label(tr("MLA Draft Workbench"), 1.7, true, column));
    titles->addWidget(label(tr("From a GQA checkpoint to an MLA draft that its target accepts: "
                               "convert, refine layer by layer, measure."),
                            1, false, column));
    auto* head = new QHBoxLayout;
    head->setSpacing(16);
    head->addWidget(icon, 0, Qt::AlignTop);
    head->addLayout(titles, 1);
    m_recentTitle = label(tr("Recent studies"), 1.15, true, column);
    m_recentTitle->hide();
    auto* content = new QVBoxLayout(column);
    content->setSpacing(14);
    content->addLayout(head);
    content->addSpacing(6);
    content->addLayout(m_entries);
    content->addWidget(m_recentTitle);
    content->addLayout(m_recent);
    auto* rows = new QVBoxLayout;
    rows->addStretch(2);
    rows->addWidget(column);
    rows->addStretch(3);
    auto* centred = new QHBoxLayout(page);
    centred->addStretch(1);
    centred->addLayout(rows, 1000); // as wide as it may be
    centred->addStretch(1);
    setWidget(page);
}

void WelcomePage::addEntry(QAction* action, const QString& description)
{
    QString title = action->text();
    title.remove(QLatin1Char('&')); // the menu's mark may be another entry's
    auto* entry = new QCommandLinkButton(title, description, this);
    entry->setToolTip(action->shortcut().toString(QKeySequence::NativeText));
    entry->setAccessibleName(title);
    entry->setAccessibleDescription(description);
    connect(entry, &QAbstractButton::clicked, action, &QAction::trigger);
    if (m_entries->isEmpty())
        setFocusProxy(entry);
    m_entries->addWidget(entry);
}

void WelcomePage::setRecent(const QStringList& paths)
{
    while (QLayoutItem* item = m_recent->takeAt(0)) {
        item->widget()->deleteLater(); // perhaps the button that is clicked just now
        delete item;
    }
    for (const QString& path : paths) {
        if (m_recent->count() == mostRecent || !QFileInfo::exists(path))
            continue;
        auto* button = new QCommandLinkButton(QFileInfo(path).fileName(), shortFolder(path), this);
        button->setAccessibleName(QFileInfo(path).fileName());
        button->setToolTip(path);
        connect(button, &QAbstractButton::clicked, this, [this, path] { emit recentChosen(path); });
        m_recent->addWidget(button);
    }
    m_recentTitle->setVisible(m_recent->count() > 0);
}

} // namespace mla::ui
