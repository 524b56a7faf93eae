// Plays one scenario: node test/zoo/play.ts test/zoo/scenarios/02-....ts The exit code is 0 if the
// scenario passes; otherwise it prints the fault in one line.
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

const [path = ''] = process.argv.slice(2)

function fail(error: unknown): never {
  const { name, message } = error instanceof Error ? error : new Error(String(error))
  const [line = ''] = message.split('\n')
  const isInvariant = /^(I\d+): /.exec(line)
  const kind = isInvariant?.[1] ?? (name === 'AssertionError' ? 'assert' : 'crash')
  console.log(
    `FAILED invariant=${kind} ${isInvariant === null ? line : line.slice(kind.length + 2)}`,
  )
  process.exit(1)
}

process.on('uncaughtException', fail)
const loaded = (await import(pathToFileURL(resolve(path)).href)) as {
  readonly scenario: () => void | Promise<void>
}
try {
  await loaded.scenario()
} catch (error) {
  fail(error)
}
console.log('HELD')
process.exit(0)
