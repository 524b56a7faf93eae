import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

import type { UpgradeStatus } from '../../src/api/cluster/upgrade-status.ts'
import { type Client, isRunning, until } from '../process/support/client.ts'
import { TestCluster } from '../process/support/cluster.ts'
import { Load } from '../process/support/load.ts'
import { flotilla } from '../support/program.ts'
import { blocksOf } from './page.ts'
import { unpackRelease } from './releases.ts'

const run = promisify(execFile)
const WRITERS = 3
const WRITES_BETWEEN = 30
const ENDED_MS = 30_000

/** Program and environment that start a controller. */
export interface Release {
  readonly program: string
  readonly env?: Readonly<Record<string, string>>
}

/**
 * Three controllers of the previous release, under load, on whose hosts the test follows
 * docs/operate/upgrade.md. This class replaces `systemctl`, `tar` and `ln`; every other line of the
 * page runs unchanged.
 */
export class UpgradeDrill {
  readonly cluster: TestCluster
  /** Releases by the version in the name of their package. */
  readonly #releases: Map<string, Release>
  readonly clients: readonly Client[]
  readonly #scratch: string
  readonly #installed: Release[]
  #load: Load | null = null

  private constructor(parts: {
    readonly cluster: TestCluster
    readonly clients: readonly Client[]
    readonly releases: ReadonlyMap<string, Release>
    readonly scratch: string
    readonly first: Release
  }) {
    this.cluster = parts.cluster
    this.clients = parts.clients
    this.#releases = new Map(parts.releases)
    this.#scratch = parts.scratch
    this.#installed = [parts.first, parts.first, parts.first]
  }

  /** @param from version of the kept package with which the cluster is formed. */
  static async begin(from: string, to: string): Promise<UpgradeDrill> {
    const scratch = mkdtempSync(join(tmpdir(), 'flotilla-upgrade-'))
    const first = { program: unpackRelease(from, scratch) }
    const cluster = await TestCluster.start({ program: first.program })
    const clients = await Promise.all([1, 2, 3].map((k) => cluster.loggedIn(k)))
    const releases = new Map<string, Release>([
      [from, first],
      [to, { program: flotilla }],
    ])
    return new UpgradeDrill({ cluster, clients, releases, scratch, first })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#load?.end().catch(() => undefined)
    await this.cluster[Symbol.asyncDispose]()
    rmSync(this.#scratch, { recursive: true, force: true })
  }

  /** Number of acknowledged writes so far. */
  get writes(): number {
    return this.#load?.fates.size ?? 0
  }

  /**
   * Writes at all three controllers until `quiet`. A refused write makes the next call of `load` or
   * `quiet` fail.
   */
  async load(): Promise<void> {
    this.#load ??= new Load(this.clients, WRITERS)
    await this.#load.more(WRITES_BETWEEN)
  }

  /**
   * @throws when a write was refused or is missing, when states differ, or when a controller was
   * quarantined.
   */
  async quiet(): Promise<void> {
    const load = this.#load
    await load?.end()
    await this.#sameDigests()
    this.#expectNoQuarantine()
    if (load !== null) this.#load = new Load(this.clients, WRITERS, load)
  }

  /**
   * Runs the commands under a heading of the page, on the host of controller `k`. @returns their
   * output.
   */
  async type(heading: string, k: number, block = 0): Promise<string> {
    const lines = blocksOf(heading)[block] ?? []
    if (lines.length === 0) throw new Error(`${heading} has no block ${block} of sh`)
    let output = ''
    for (const line of lines)
      output += await this.#typeLine(line.replaceAll(/ctrl\d/g, `ctrl${k}`), k)
    return output
  }

  async #typeLine(line: string, k: number): Promise<string> {
    const unpacked =
      /^tar --extract --file flotilla-(.+)-linux-x64\.tar\.xz --directory \/opt\/flotilla$/.exec(
        line,
      )
    const chosen = /^ln -sfn flotilla-(.+) \/opt\/flotilla\/current$/.exec(line)
    if (unpacked?.[1] !== undefined) this.#named(unpacked[1])
    else if (chosen?.[1] !== undefined) this.installNamed(k, chosen[1])
    else if (line === `systemctl restart flotilla-controller@ctrl${k}`) {
      await this.stop(k)
      void this.start(k)
    } else if (line.startsWith('flotilla ')) return await this.#run(line, k)
    else throw new Error(`the page has a line that the drill does not know: ${line}`)
    return ''
  }

  #named(version: string): Release {
    const release = this.#releases.get(version)
    if (release === undefined) throw new Error(`the page installs ${version}, which is not there`)
    return release
  }

  async #run(line: string, k: number): Promise<string> {
    const { program } = this.#of(k)
    const typed = line.replaceAll('/etc/flotilla', this.cluster.folder)
    const PATH = `${dirname(program)}:${process.env['PATH'] ?? ''}`
    const { stdout } = await run('sh', ['-euc', typed], { env: { ...this.cluster.env, PATH } })
    return stdout
  }

  #of(k: number): Release {
    const release = this.#installed[k - 1]
    if (release === undefined) throw new Error(`there is no controller ${k}`)
    return release
  }

  /** Makes this release the package of that version. */
  publish(version: string, release: Release): void {
    this.#releases.set(version, release)
  }

  installNamed(k: number, version: string): void {
    this.#installed[k - 1] = this.#named(version)
  }

  async stop(k: number): Promise<void> {
    const pid = this.cluster.pid(k)
    this.cluster.kill(k, 'SIGTERM')
    const hasEnded = (): Promise<boolean> => Promise.resolve(!isRunning(pid))
    await until(`ctrl${k} has ended`, hasEnded, ENDED_MS)
  }

  /** @returns the exit code of the controller, as a promise, if the controller exits by itself. */
  start(k: number): Promise<number | null> {
    const { program, env } = this.#of(k)
    const child = this.cluster.run(k, env, program)
    return new Promise((done) => child.once('exit', done))
  }

  /** The status that controller `k` reports; its release must have the command. */
  async status(k: number): Promise<UpgradeStatus> {
    const config = join(this.cluster.folder, `ctrl${k}`, 'config.yml')
    const words = ['cluster', 'upgrade', 'status', '--json', '--config', config]
    const { stdout } = await run(this.#of(k).program, words, { env: { ...this.cluster.env } })
    return JSON.parse(stdout) as UpgradeStatus
  }

  /** Waits until the level is active on every controller. */
  async raised(level: number): Promise<void> {
    for (const k of [1, 2, 3]) {
      await until(`level ${level} on ctrl${k}`, async () => {
        return (await this.cluster.clusterStatus(k)).featureLevel === level
      })
    }
  }

  logOf(k: number): string {
    return readFileSync(join(this.cluster.folder, `ctrl${k}`, 'controller.log'), 'utf8')
  }

  /** The digests that the first controller reports; it is upgraded before this is called. */
  async #sameDigests(): Promise<void> {
    const members = await until('one digest index on all three', async () => {
      const { members } = await this.cluster.clusterStatus(1)
      const indexes = new Set(members.map(({ digestIndex }) => digestIndex))
      const isTold = members.length === 3 && members.every(({ digest }) => digest !== '')
      return isTold && indexes.size === 1 && members
    })
    const told = members.map(({ id, digest }) => `${id} ${digest}`)
    if (new Set(members.map(({ digest }) => digest)).size > 1) {
      throw new Error(`the states differ: ${told.join(', ')}`)
    }
  }

  #expectNoQuarantine(): void {
    for (const k of [1, 2, 3]) {
      const isOut = existsSync(join(this.cluster.folder, `ctrl${k}`, 'data', 'QUARANTINE'))
      if (isOut || /STATE_DIVERGED|quarantine/i.test(this.logOf(k))) {
        throw new Error(`ctrl${k} was quarantined:\n${this.cluster.logs()}`)
      }
    }
  }
}
