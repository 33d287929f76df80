// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/svg_outlines.h"

#include <cmath>

#include <QFont>
#include <QPainterPath>
#include <QTransform>
#include <QXmlStreamReader>
#include <QXmlStreamWriter>

namespace mla::ui
{

namespace
{

const auto svgNamespace = QStringLiteral("http://www.w3.org/2000/svg"); // browsers insist
constexpr int outlineSize = 256; // pixels: large enough that hinting moves nothing

QString number(double value)
{
    return QString::number(std::round(value * 1000) / 1000, 'g', 9);
}

QString pathData(const QPainterPath& path)
{
    QString data;
    for (int i = 0; i < path.elementCount(); ++i) {
        const QPainterPath::Element at = path.elementAt(i);
        if (at.type == QPainterPath::MoveToElement)
            data += QLatin1Char('M');
        else if (at.type == QPainterPath::LineToElement)
            data += QLatin1Char('L');
        else if (at.type == QPainterPath::CurveToElement)
            data += QLatin1Char('C');
        else
            data += QLatin1Char(' '); // the other two points of a curve
        data += number(at.x) + QLatin1Char(' ') + number(at.y);
    }
    return data;
}

QPainterPath outlines(const QXmlStreamAttributes& attributes, const QString& text)
{
    QFont font(attributes.value("font-family").toString().section(QLatin1Char(','), 0, 0));
    font.setPixelSize(outlineSize);
    font.setWeight(QFont::Weight(attributes.value("font-weight").toInt()));
    font.setItalic(attributes.value("font-style") == QLatin1String("italic"));
    font.setHintingPreference(QFont::PreferNoHinting);
    QPainterPath path;
    path.addText(0, 0, font, text);
    const double scale = attributes.value("font-size").toDouble() / outlineSize;
    return QTransform::fromScale(scale, scale)
        .map(path)
        .translated(attributes.value("x").toDouble(), attributes.value("y").toDouble());
}

void writeOutlines(QXmlStreamWriter& writer, const QXmlStreamAttributes& attributes,
                   const QString& text)
{
    writer.writeEmptyElement(svgNamespace, QStringLiteral("path"));
    for (const char* kept : {"fill", "fill-opacity", "stroke"})
        writer.writeAttribute(QLatin1String(kept),
                              attributes.value(QLatin1String(kept)).toString());
    writer.writeAttribute(QStringLiteral("fill-rule"), QStringLiteral("nonzero"));
    writer.writeAttribute(QStringLiteral("aria-label"), text);
    writer.writeAttribute(QStringLiteral("d"), pathData(outlines(attributes, text)));
}

} // namespace

QByteArray withTextAsOutlines(const QByteArray& svg)
{
    QByteArray drawn;
    QXmlStreamReader reader(svg);
    QXmlStreamWriter writer(&drawn);
    while (!reader.atEnd()) {
        reader.readNext();
        if (reader.isStartElement() && reader.name() == QLatin1String("text")) {
            const QXmlStreamAttributes attributes = reader.attributes();
            writeOutlines(writer, attributes, reader.readElementText());
        } else if (!reader.hasError()) {
            writer.writeCurrentToken(reader);
        }
    }
    return reader.hasError() ? svg : drawn;
}

} // namespace mla::ui
