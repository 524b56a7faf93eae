import { type Environment, substituteVariables } from '../../config/engine/environment.ts'
import { shortenText } from '../../config/engine/fault.ts'
import { parseYamlTree, type YamlTree, yamlTreeLimits } from '../../config/engine/yaml-tree.ts'
import { MigrationFault } from '../fault.ts'

interface SettingsSource {
  /** Absolute path of the file. */
  readonly file: string
  readonly environment: Environment
  /** Keys that the migration has read. */
  readonly used: Set<string>
}

/** A section of OpenZiti's configuration; it records which keys were read. */
export class OpenZitiSettings {
  readonly #tree: YamlTree | null
  readonly #source: SettingsSource
  /** For example `web[0].options.`; empty at the top level. */
  readonly #prefix: string

  private constructor(tree: YamlTree | null, source: SettingsSource, prefix: string) {
    this.#tree = tree
    this.#source = source
    this.#prefix = prefix
  }

  /** @throws {MigrationFault} CONFIGURATION. */
  static parse(text: string, file: string, environment: Environment): OpenZitiSettings {
    const parsed = parseYamlTree(text, yamlTreeLimits, 'replace')
    if (!parsed.ok) {
      const [{ line, problem } = { line: null, problem: 'is not YAML' }] = parsed.faults
      throw configurationFault(`${file}${line === null ? '' : `:${line}`}: ${problem}`)
    }
    if (parsed.tree.kind !== 'map') {
      throw configurationFault(`${file} has no sections; name the configuration of a controller`)
    }
    return new OpenZitiSettings(parsed.tree, { file, environment, used: new Set() }, '')
  }

  has(name: string): boolean {
    return this.#member(name) !== null
  }

  section(name: string): OpenZitiSettings {
    const tree = this.#member(name)
    if (tree !== null && tree.kind !== 'map' && !isEmpty(tree)) {
      throw this.fault(name, 'expected a section with keys', tree)
    }
    return new OpenZitiSettings(
      tree?.kind === 'map' ? tree : null,
      this.#source,
      `${this.#key(name)}.`,
    )
  }

  /** The sections in a list; [] if the list is absent. */
  sections(name: string): OpenZitiSettings[] {
    const tree = this.#member(name)
    if (tree === null || isEmpty(tree)) return []
    if (tree.kind !== 'list') throw this.fault(name, 'expected a list', tree)
    return tree.items.map((item, at) => {
      if (item.kind !== 'map') throw this.fault(name, 'expected a list of sections', tree)
      return new OpenZitiSettings(item, this.#source, `${this.#key(name)}[${at}].`)
    })
  }

  /** A value as a string, with environment variables replaced; null if it is absent or empty. */
  text(name: string): string | null {
    const tree = this.#member(name)
    if (tree === null) return null
    if (tree.kind !== 'scalar') throw this.fault(name, 'expected a value', tree)
    this.#source.used.add(this.#key(name))
    if (tree.value === null) return null
    const { text, missing } = substituteVariables(String(tree.value), this.#source.environment)
    const [variable] = missing
    if (variable === undefined) return text === '' ? null : text
    throw this.fault(name, `the environment variable ${variable} is not set`, tree)
  }

  /** @throws {MigrationFault} CONFIGURATION if the value is absent or empty. */
  requiredText(name: string): string {
    const found = this.text(name)
    if (found !== null) return found
    throw configurationFault(`${this.#source.file}: ${this.#key(name)} is missing`)
  }

  /** Keys whose values were not read. */
  unused(): string[] {
    const found: string[] = []
    const visit = (tree: YamlTree, key: string): void => {
      if (tree.kind === 'map') {
        for (const entry of tree.entries) {
          visit(entry.value, key === '' ? entry.key : `${key}.${entry.key}`)
        }
      } else if (tree.kind === 'list') {
        for (const [at, item] of tree.items.entries()) visit(item, `${key}[${at}]`)
      } else if (!this.#source.used.has(key)) {
        found.push(shortenText(key))
      }
    }
    if (this.#tree !== null) visit(this.#tree, '')
    return found
  }

  fault(name: string, problem: string, tree: YamlTree | null = this.#member(name)): MigrationFault {
    const line = tree === null ? '' : `:${tree.line}`
    return configurationFault(`${this.#source.file}${line}: ${this.#key(name)}: ${problem}`)
  }

  #key(name: string): string {
    return this.#prefix + name
  }

  #member(name: string): YamlTree | null {
    if (this.#tree?.kind !== 'map') return null
    return this.#tree.entries.find(({ key }) => key === name)?.value ?? null
  }
}

function isEmpty(tree: YamlTree): boolean {
  return tree.kind === 'scalar' && tree.value === null
}

export function configurationFault(message: string): MigrationFault {
  return new MigrationFault('CONFIGURATION', message)
}
