import { htmlText } from '../../lib/text/html-text.ts'

const style =
  ':root{color-scheme:light dark}body{font-family:system-ui,sans-serif;margin:0;min-height:100vh;' +
  'display:grid;place-items:center;background:light-dark(#f3f5f8,#10161d);' +
  'color:light-dark(#1b2733,#e6ebf1)}main{width:min(26rem,86vw);padding:2rem;border-radius:.75rem;' +
  'background:light-dark(#fff,#19222c)}h1{font-size:1.25rem;margin:0 0 .75rem}p{margin:0;line-height:1.5}'

/** The page at the end of a log-in in the browser; the terminal goes on. */
export function redirectPage({
  isLoggedIn,
  text,
}: {
  readonly isLoggedIn: boolean
  readonly text: string
}): string {
  const title = isLoggedIn ? 'You are logged in' : 'The log-in failed'
  return (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">' +
    '<meta name="viewport" content="width=device-width,initial-scale=1">' +
    `<title>${title}</title><style>${style}</style></head>` +
    `<body><main><h1>${title}</h1><p>${htmlText(text)}</p></main></body></html>\n`
  )
}
