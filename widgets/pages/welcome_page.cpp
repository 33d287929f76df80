// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/welcome_page.h"

#include <QAction>
#include <QCommandLinkButton>
#include <QDir>
#include <QEvent>
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
constexpr int entryIconSize = 22;
constexpr int mostRecent = 5;
constexpr const char* iconProperty = "iconName";

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

QCommandLinkButton* WelcomePage::addButton(QVBoxLayout* column, const QString& title,
                                           const QString& icon, const QString& description)
{
    auto* button = new QCommandLinkButton(title, description, this);
    button->setAccessibleName(title);
    button->setAccessibleDescription(description);
    button->setProperty(iconProperty, icon);
    button->setIconSize(QSize(entryIconSize, entryIconSize));
    button->setIcon(themedIcon(icon, palette()));
    column->addWidget(button);
    return button;
}

void WelcomePage::showIcons()
{
    for (QCommandLinkButton* button : findChildren<QCommandLinkButton*>())
        button->setIcon(themedIcon(button->property(iconProperty).toString(), palette()));
}

void WelcomePage::changeEvent(QEvent* event)
{
    QScrollArea::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        showIcons();
}

void WelcomePage::addEntry(QAction* action, const QString& icon, const QString& description)
{
    QString title = action->text();
    title.remove(QLatin1Char('&')); // the menu's mark may be another entry's
    QCommandLinkButton* entry = addButton(m_entries, title, icon, description);
    entry->setToolTip(action->shortcut().toString(QKeySequence::NativeText));
    connect(entry, &QAbstractButton::clicked, action, &QAction::trigger);
    if (m_entries->count() == 1)
        setFocusProxy(entry);
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
        QCommandLinkButton* button = addButton(m_recent, QFileInfo(path).fileName(),
                                               QStringLiteral("study"), shortFolder(path));
        button->setToolTip(path);
        connect(button, &QAbstractButton::clicked, this, [this, path] { emit recentChosen(path); });
    }
    m_recentTitle->setVisible(m_recent->count() > 0);
}

} // namespace mla::ui
