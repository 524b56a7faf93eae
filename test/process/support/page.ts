import { spawn } from 'node:child_process'
import { pageText, shellBlocks } from '../../support/pages.ts'

/**
 * @returns all commands of a page in order, with the ports of the test instead of the ports of the
 * page.
 */
export function linesOf(name: string, port: number): string {
  return shellBlocks(pageText(name))
    .join("\nprintf '\\n'\n")
    .replace(
      /((?:127\.0\.0\.1:|--proxy [a-z]+:|"port":|--(?:edge|link)-port ))(1[2-6]8[0-9])\b/g,
      (_, host: string, found: string) => {
        return `${host}${Number(found) - 1280 + port}`
      },
    )
}

export interface Finished {
  readonly code: number | null
  readonly output: string
}

/** Runs a script as one `sh` that stops at the first line that fails. */
export function run(script: string, cwd: string): Promise<Finished> {
  return new Promise((done, reject) => {
    const child = spawn('sh', ['-eu'], { cwd, detached: true, stdio: ['pipe', 'pipe', 'pipe'] })
    let output = ''
    const gather = (chunk: Buffer): void => {
      output += chunk.toString('utf8')
    }
    child.stdout.on('data', gather)
    child.stderr.on('data', gather)
    child.once('error', reject)
    child.once('exit', () => endGroup(child.pid))
    child.once('close', (code) => done({ code, output }))
    child.stdin.end(script)
  })
}

/**
 * When a line fails, background programs of the script would keep its output open, so this ends
 * them.
 */
function endGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The process group has no process left.
  }
}
