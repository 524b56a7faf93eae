import { generate } from 'lean-qr'
import { useMemo } from 'preact/hooks'

import { Notice } from './status.tsx'
import { texts } from '../texts.ts'

const MARGIN = 2

/** The dark squares of a QR code as one path. Adjacent squares in a row form one line. */
function pathOf(text: string): { readonly path: string; readonly size: number } | null {
  try {
    const code = generate(text)
    const parts: string[] = []
    for (let y = 0; y < code.size; y += 1) {
      for (let x = 0; x < code.size; x += 1) {
        if (!code.get(x, y)) continue
        let end = x + 1
        while (end < code.size && code.get(end, y)) end += 1
        parts.push(`M${x} ${y}h${end - x}v1h${x - end}z`)
        x = end
      }
    }
    return { path: parts.join(''), size: code.size }
  } catch {
    return null
  }
}

export function QrCode({ text, label }: { readonly text: string; readonly label: string }) {
  const code = useMemo(() => pathOf(text), [text])
  if (code === null) return <Notice>{texts.wizards.noQr}</Notice>
  const { path, size } = code
  const box = `${-MARGIN} ${-MARGIN} ${size + 2 * MARGIN} ${size + 2 * MARGIN}`
  return (
    <svg class="qr" viewBox={box} role="img" aria-label={label} shape-rendering="crispEdges">
      <path d={path} fill="#000" />
    </svg>
  )
}
