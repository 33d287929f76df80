// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/help/help_browser.h"

#include <algorithm>

#include <QDesktopServices>
#include <QDir>
#include <QEvent>
#include <QFileInfo>
#include <QResizeEvent>
#include <QScrollBar>
#include <QTextBlock>
#include <QTextTable>

#include "widgets/common/fonts.h"
#include "widgets/common/palette.h"

namespace mla::ui
{

namespace
{
constexpr double cellPadding = 4;
constexpr double pageMargin = 12;
constexpr double space = 8; // around code and tables, above headings
constexpr double halfSpace = space / 2;

bool isCode(const QTextBlock& block)
{
    return block.isValid() && block.blockFormat().hasProperty(QTextFormat::BlockCodeFence);
}
} // namespace

HelpBrowser::HelpBrowser(QWidget* parent) : QTextBrowser(parent)
{
    setOpenLinks(false); // only pages and the web: see follow()
    document()->setDocumentMargin(pageMargin);
    connect(this, &QTextBrowser::anchorClicked, this, &HelpBrowser::follow);
    connect(this, &QTextBrowser::sourceChanged, this, [this](const QUrl& source) {
        m_page = QFileInfo(source.toLocalFile()).completeBaseName(); // source() is still the last
        style();
        emit pageShown(m_page);
    });
}

void HelpBrowser::open(const QString& id)
{
    const QString path = QDir(m_folder).absoluteFilePath(id + QStringLiteral(".md"));
    setSource(QUrl::fromLocalFile(path), QTextDocument::MarkdownResource);
}

void HelpBrowser::follow(const QUrl& link)
{
    if (link.scheme().startsWith(QLatin1String("http")))
        QDesktopServices::openUrl(link);
    else if (link.path().endsWith(QLatin1String(".md")))
        emit pageRequested(QFileInfo(link.path()).completeBaseName());
}

/// Markdown says nothing of looks: what Qt makes of it has no lines in tables and the system's own
/// fixed-width font.
void HelpBrowser::style()
{
    const bool wasModified = document()->isModified();
    styleTables();
    styleBlocks();
    fitPictures();
    document()->setModified(wasModified);
}

void HelpBrowser::styleTables()
{
    QColor lines = palette().color(QPalette::PlaceholderText);
    lines.setAlphaF(0.5F);
    for (QTextFrame* frame : document()->rootFrame()->childFrames()) {
        auto* table = qobject_cast<QTextTable*>(frame);
        if (!table)
            continue;
        QTextTableFormat format = table->format();
        format.setBorder(1);
        format.setBorderStyle(QTextFrameFormat::BorderStyle_Solid);
        format.setBorderBrush(lines);
        format.setBorderCollapse(true);
        format.setCellSpacing(0);
        format.setCellPadding(cellPadding);
        format.setTopMargin(halfSpace);
        format.setBottomMargin(space);
        table->setFormat(format);
        for (int column = 0; column < table->columns(); ++column) {
            QTextTableCell cell = table->cellAt(0, column);
            QTextCharFormat head = cell.format();
            head.setBackground(palette().alternateBase());
            cell.setFormat(head);
        }
    }
}

void HelpBrowser::styleBlocks()
{
    for (QTextBlock block = document()->begin(); block.isValid(); block = block.next()) {
        QTextBlockFormat format;
        if (isCode(block)) {
            format.setBackground(palette().alternateBase());
            format.setNonBreakableLines(false); // a narrow window wraps it
            format.setTopMargin(isCode(block.previous()) ? 0 : halfSpace);
            format.setBottomMargin(isCode(block.next()) ? 0 : space);
        } else if (block.blockFormat().headingLevel() > 1) {
            format.setTopMargin(2 * space);
            format.setBottomMargin(halfSpace);
        }
        if (format.propertyCount() > 0)
            QTextCursor(block).mergeBlockFormat(format);
        styleText(block);
    }
}

void HelpBrowser::styleText(const QTextBlock& block)
{
    // Collected first: setting a format moves the fragments.
    std::vector<std::tuple<int, int, QTextCharFormat>> changes;
    for (auto at = block.begin(); !at.atEnd(); ++at) {
        const QTextFragment part = at.fragment();
        QTextCharFormat format;
        if (part.charFormat().fontFixedPitch() || isCode(block))
            format.setFontFamilies(monospaceFont().families());
        if (part.charFormat().isAnchor())
            format.setForeground(palette().link());
        if (format.propertyCount() > 0)
            changes.emplace_back(part.position(), part.length(), format);
    }
    for (const auto& [position, length, format] : changes) {
        QTextCursor cursor(document());
        cursor.setPosition(position);
        cursor.setPosition(position + length, QTextCursor::KeepAnchor);
        cursor.mergeCharFormat(format);
    }
}

void HelpBrowser::fitPictures()
{
    std::vector<std::pair<int, QTextImageFormat>> pictures; // setting a format moves the fragments
    for (QTextBlock block = document()->begin(); block.isValid(); block = block.next())
        for (auto at = block.begin(); !at.atEnd(); ++at)
            if (at.fragment().charFormat().isImageFormat())
                pictures.emplace_back(at.fragment().position(),
                                      at.fragment().charFormat().toImageFormat());
    for (const auto& [position, format] : pictures)
        fitPicture(position, format);
}

/// Scaled here: a text document would take the nearest pixels.
void HelpBrowser::fitPicture(const int position, QTextImageFormat format)
{
    const QImage picture(QDir(m_folder).filePath(format.name()));
    if (picture.isNull())
        return;
    // As if there were a scroll bar: its coming and going must not change the page's length.
    const double room =
        width() - 2 * frameWidth() - verticalScrollBar()->sizeHint().width() - 2 * pageMargin;
    const double shown = std::clamp(room, 1.0, double(picture.width()));
    const double ratio = devicePixelRatioF();
    QImage scaled = picture.scaledToWidth(qRound(shown * ratio), Qt::SmoothTransformation);
    scaled.setDevicePixelRatio(ratio);
    document()->addResource(QTextDocument::ImageResource,
                            document()->baseUrl().resolved(QUrl(format.name())), scaled);
    format.setWidth(shown);
    format.setHeight(scaled.height() / ratio);
    QTextCursor cursor(document());
    cursor.setPosition(position);
    cursor.setPosition(position + 1, QTextCursor::KeepAnchor);
    cursor.mergeCharFormat(format);
}

void HelpBrowser::highlight(const QStringList& words)
{
    QTextCharFormat marked;
    marked.setBackground(plotThemeFor(palette()).highlight);
    marked.setForeground(Qt::black); // the highlight is light in both themes
    QList<ExtraSelection> selections;
    for (const QString& word : words)
        for (QTextCursor at = document()->find(word); !at.isNull(); at = document()->find(word, at))
            selections << ExtraSelection{at, marked};
    setExtraSelections(selections);
}

void HelpBrowser::changeEvent(QEvent* event)
{
    QTextBrowser::changeEvent(event);
    if (event->type() != QEvent::PaletteChange || m_page.isEmpty())
        return;
    const int place = verticalScrollBar()->value();
    reload();
    verticalScrollBar()->setValue(place);
}

void HelpBrowser::resizeEvent(QResizeEvent* event)
{
    QTextBrowser::resizeEvent(event);
    if (event->size().width() != event->oldSize().width())
        fitPictures();
}

} // namespace mla::ui
