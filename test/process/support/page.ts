import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { TestCluster } from './cluster.ts'
import { flotilla } from './cluster.ts'

const DOCS = resolve(import.meta.dirname, '../../../docs')

export interface Finished {
  readonly code: number | null
  readonly output: string
}

/** All that a page of docs/ has typed, in order; only where the controllers listen is not the page's own. */
export function linesOf(name: string, port: number): { script: string; blocks: number } {
  const page = readFileSync(join(DOCS, name), 'utf8')
  const blocks = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)
  const script = blocks
    .join("\nprintf '\\n'\n")
    .replace(/(127\.0\.0\.1:)(128[0-9])\b/g, (_, host: string, found: string) => {
      return `${host}${Number(found) - 1280 + port}`
    })
  return { script, blocks: blocks.length }
}

/** What a page expects around it: the folder of the cluster as `.flotilla`, and the program. */
export function layOutFor({ dir, folder }: TestCluster): void {
  symlinkSync(folder, join(dir, '.flotilla'))
  mkdirSync(join(dir, 'bin'))
  symlinkSync(flotilla, join(dir, 'bin/flotilla'))
}

export function runScript(script: string, cwd: string): Promise<Finished> {
  return new Promise((done, reject) => {
    const child = spawn('sh', ['-eu'], { cwd, stdio: ['pipe', 'pipe', 'pipe'] })
    let output = ''
    const gather = (chunk: Buffer): void => {
      output += chunk.toString('utf8')
    }
    child.stdout.on('data', gather)
    child.stderr.on('data', gather)
    child.once('error', reject)
    child.once('close', (code) => done({ code, output }))
    child.stdin.end(script)
  })
}
