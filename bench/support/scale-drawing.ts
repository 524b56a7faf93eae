import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Curves {
  /** The unit of the sizes, such as `identities`. */
  readonly over: string
  /** Sizes along the horizontal axis, at equal distances. */
  readonly sizes: readonly number[]
  readonly curves: readonly Curve[]
  readonly unit: string
}

/** A curve with one value for each size. */
export interface Curve {
  readonly name: string
  readonly values: readonly number[]
}

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [900, 480, 70, 300, 20, 50]
const colours = ['#1b6ca8', '#c0392b', '#1e8449', '#8e44ad', '#b9770e', '#34495e', '#148f77']

/**
 * Draws curves as SVG. If each size is ten times the previous one, both axes are logarithmic, and a
 * horizontal line shows a cost that is independent of the size.
 */
export function scaleDrawing({ over, sizes, curves, unit }: Curves): string {
  const all = curves.flatMap(({ values }) => values).filter((value) => value > 0)
  const low = Math.floor(Math.log10(Math.min(...all)))
  const high = Math.ceil(Math.log10(Math.max(...all)))
  const x = (at: number): number =>
    LEFT + ((WIDTH - LEFT - RIGHT) * at) / Math.max(1, sizes.length - 1)
  const y = (value: number): number =>
    HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * (Math.log10(value) - low)) / (high - low)
  const rows: string[] = []
  for (let power = low; power <= high; power += 1) {
    const at = y(10 ** power).toFixed(1)
    rows.push(
      `<line x1="${LEFT}" y1="${at}" x2="${WIDTH - RIGHT}" y2="${at}" stroke="#ddd"/>`,
      `<text x="${LEFT - 8}" y="${at}" text-anchor="end" dy="4">${10 ** power} ${unit}</text>`,
    )
  }
  for (const [at, size] of sizes.entries()) {
    const label = size.toLocaleString('en')
    const place = `x="${x(at).toFixed(1)}" y="${HEIGHT - BOTTOM + 20}"`
    rows.push(`<text ${place} text-anchor="middle">${label}</text>`)
  }
  for (const [at, { name, values }] of curves.entries()) {
    const colour = colours[at % colours.length] ?? '#000'
    const points = values.map((value, k) => `${x(k).toFixed(1)},${y(value).toFixed(1)}`).join(' ')
    rows.push(
      `<polyline points="${points}" fill="none" stroke="${colour}" stroke-width="2"/>`,
      `<text x="${WIDTH - RIGHT + 12}" y="${TOP + 20 + at * 22}" fill="${colour}">${name}</text>`,
    )
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#fff"/>
${rows.join('\n')}
<text x="${LEFT}" y="${HEIGHT - 8}">${over}</text>
</svg>
`
}

/**
 * Prints a table of values with a column for each size, and draws the curves as SVG in a folder.
 * @param others values in other units, which are printed but not drawn.
 */
export function writeCurves(
  folder: string,
  file: string,
  curves: Curves,
  others: readonly Curve[] = [],
): void {
  const { over, sizes, unit } = curves
  const cell = (value: number): string => (value < 10 ? value.toFixed(2) : value.toFixed(0))
  const row = (name: string, cells: readonly string[]): string =>
    [name.padEnd(40), ...cells.map((text) => text.padStart(10))].join('')
  console.log(row(`${over} (${unit})`, sizes.map(String)))
  for (const { name, values } of [...curves.curves, ...others])
    console.log(row(name, values.map(cell)))
  mkdirSync(folder, { recursive: true })
  const path = join(folder, file)
  writeFileSync(path, scaleDrawing(curves))
  console.log(`drawn: ${path}`)
}
